// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// Transposed convolutions are dilated on the left.
// CHECK: error: stablehlo.convolution is not supported in stage stablehlo-to-ttir
// CHECK: at loc("-":7:8)
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x2x2xf32>) -> tensor<1x4x16x16xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x4x8x8xf32>, tensor<4x4x2x2xf32>) -> tensor<1x4x16x16xf32>
  return %0 : tensor<1x4x16x16xf32>
}

// -----

// Negative padding.
// CHECK: error: stablehlo.convolution is not supported in stage stablehlo-to-ttir
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x2x2xf32>) -> tensor<1x4x6x7xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {pad = [[-1, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x4x8x8xf32>, tensor<4x4x2x2xf32>) -> tensor<1x4x6x7xf32>
  return %0 : tensor<1x4x6x7xf32>
}

// -----

// Three spatial dimensions.
// CHECK: error: stablehlo.convolution is not supported in stage stablehlo-to-ttir
func.func @main(%x: tensor<1x4x8x8x8xf32>, %w: tensor<4x4x1x1x1xf32>) -> tensor<1x4x8x8x8xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1, 2]x[o, i, 0, 1, 2]->[b, f, 0, 1, 2],
    window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x4x8x8x8xf32>, tensor<4x4x1x1x1xf32>) -> tensor<1x4x8x8x8xf32>
  return %0 : tensor<1x4x8x8x8xf32>
}
