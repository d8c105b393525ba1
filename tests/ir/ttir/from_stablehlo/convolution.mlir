// RUN: %opt --step stablehlo-to-ttir %s | %check

// NCHW to flattened NHWC and back; padding is top, bottom, left, right.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4x8x6xf32>, %w: tensor<10x2x3x3xf32>) -> tensor<2x10x4x7xf32> {
  // CHECK: [[NHWC:%[0-9]+]] = "ttir.permute"(%arg0) {permutation = array<i64: 0, 2, 3, 1>}
  // CHECK: [[FLAT:%[0-9]+]] = "ttir.reshape"([[NHWC]]) {shape = array<i64: 1, 1, 96, 4>}
  // CHECK: "ttir.conv2d"([[FLAT]], {{.*}} {batch_size = 2 : i64, dilation = array<i64: 1, 1>, groups = 2 : i64,
  // CHECK-SAME: in_channels = 4 : i64, input_height = 8 : i64, input_width = 6 : i64, kernel_size = array<i64: 3, 3>,
  // CHECK-SAME: out_channels = 10 : i64, padding = array<i64: 1, 0, 2, 1>, stride = array<i64: 2, 1>
  // CHECK-SAME: -> tensor<1x1x56x10xf32>
  // CHECK: "ttir.permute"({{.*}}) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<2x4x7x10xf32>)
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {stride = [2, 1], pad = [[1, 0], [2, 1]]}
    {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
    : (tensor<2x4x8x6xf32>, tensor<10x2x3x3xf32>) -> tensor<2x10x4x7xf32>
  return %0 : tensor<2x10x4x7xf32>
}

// -----

// One spatial dimension: images of height one.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4x9xf32>, %w: tensor<5x4x3xf32>) -> tensor<2x5x9xf32> {
  // CHECK: [[WEIGHT:%[0-9]+]] = "ttir.reshape"({{.*}}) {shape = array<i64: 5, 4, 1, 3>}
  // CHECK: "ttir.conv2d"({{.*}}, [[WEIGHT]]) {{.*}} dilation = array<i64: 1, 2>
  // CHECK-SAME: input_height = 1 : i64, input_width = 9 : i64
  // CHECK-SAME: padding = array<i64: 0, 0, 2, 2>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
    window = {pad = [[2, 2]], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x4x9xf32>, tensor<5x4x3xf32>) -> tensor<2x5x9xf32>
  return %0 : tensor<2x5x9xf32>
}
