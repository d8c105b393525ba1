// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// Four spatial dimensions are not supported.
// CHECK: error: stablehlo.convolution is not supported in stage stablehlo-to-ttir
// CHECK: at loc("-":7:8)
func.func @main(%x: tensor<1x4x8x8x8x2xf32>, %w: tensor<4x4x1x1x1x1xf32>) -> tensor<1x4x8x8x8x2xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1, 2, 3]x[o, i, 0, 1, 2, 3]->[b, f, 0, 1, 2, 3],
    window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x4x8x8x8x2xf32>, tensor<4x4x1x1x1x1xf32>) -> tensor<1x4x8x8x8x2xf32>
  return %0 : tensor<1x4x8x8x8x2xf32>
}
