// RUN: %opt --step stablehlo-to-ttir %s | %check

// NCHW is converted to flattened NHWC and back. The order of padding is top, bottom, left, right.
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

// With one spatial dimension, images get the height one.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4x9xf32>, %w: tensor<5x4x3xf32>) -> tensor<2x5x9xf32> {
  // CHECK: [[WEIGHT:%[0-9]+]] = "ttir.reshape"({{.*}}) {shape = array<i64: 5, 4, 1, 3>}
  // CHECK: "ttir.conv2d"({{.*}}, [[WEIGHT]]) {{.*}}dilation = array<i64: 1, 2>
  // CHECK-SAME: input_height = 1 : i64, input_width = 9 : i64
  // CHECK-SAME: padding = array<i64: 0, 0, 2, 2>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
    window = {pad = [[2, 2]], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x4x9xf32>, tensor<5x4x3xf32>) -> tensor<2x5x9xf32>
  return %0 : tensor<2x5x9xf32>
}

// -----

// lhs_dilate puts zeros between the elements, negative padding crops, and a reversed window is flipped.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x2x2xf32>) -> tensor<1x4x13x16xf32> {
  // CHECK: "ttir.arange"() {{{.*}}start = 1 : i64, step = -1
  // CHECK: "ttir.pad"({{.*}}) {padding = array<i64: 0, 0, 0, 0, 0, 1, 0, 0, 0, 0>, value = 0.0
  // CHECK: "ttir.slice_static"({{.*}}) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 1, 15, 8, 4>
  // CHECK: "ttir.slice_static"({{.*}}) {begins = array<i64: 0, 2, 0, 0>, ends = array<i64: 1, 15, 15, 4>
  // CHECK: "ttir.conv2d"({{.*}} input_height = 13 : i64, input_width = 15 : i64, {{.*}}padding = array<i64: 0, 1, 1, 1>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {pad = [[-2, 1], [1, 1]], lhs_dilate = [2, 2], reverse = [true, false]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x4x8x8xf32>, tensor<4x4x2x2xf32>) -> tensor<1x4x13x16xf32>
  return %0 : tensor<1x4x13x16xf32>
}

// -----

// Batch groups become feature groups.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<6x4x8x8xf32>, %w: tensor<4x4x2x2xf32>) -> tensor<3x4x7x7xf32> {
  // CHECK: "ttir.permute"({{.*}}) {permutation = array<i64: 1, 2, 3, 0, 4>} : (tensor<2x3x8x8x4xf32>)
  // CHECK: "ttir.conv2d"({{.*}}) {batch_size = 3 : i64, {{.*}}groups = 2 : i64, in_channels = 8 : i64
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {} {batch_group_count = 2 : i64, feature_group_count = 1 : i64}
    : (tensor<6x4x8x8xf32>, tensor<4x4x2x2xf32>) -> tensor<3x4x7x7xf32>
  return %0 : tensor<3x4x7x7xf32>
}

// -----

// Volumes are not flattened, the filters become columns of a matrix, and uneven padding becomes a pad.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4x5x6x7xf32>, %w: tensor<8x2x2x3x3xf32>) -> tensor<2x8x5x4x5xf32> {
  // CHECK: [[X:%[0-9]+]] = "ttir.pad"({{.*}}) {padding = array<i64: 0, 0, 0, 1, 0, 0, 0, 0, 0, 0>
  // CHECK: [[W:%[0-9]+]] = "ttir.reshape"({{.*}}) {shape = array<i64: 36, 8>}
  // CHECK: "ttir.conv3d"([[X]], [[W]]) {batch_size = 2 : i64, groups = 2 : i64, in_channels = 4 : i64, input_depth = 6
  // CHECK-SAME: kernel_size = array<i64: 2, 3, 3>
  // CHECK-SAME: (tensor<2x6x6x7x4xf32>, tensor<36x8xf32>) -> tensor<2x5x4x5x8xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1, 2]x[o, i, 0, 1, 2]->[b, f, 0, 1, 2],
    window = {pad = [[0, 1], [0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
    : (tensor<2x4x5x6x7xf32>, tensor<8x2x2x3x3xf32>) -> tensor<2x8x5x4x5xf32>
  return %0 : tensor<2x8x5x4x5xf32>
}

// -----

// Integers are multiplied as matrices, one for each place in the kernel, in the type of the result.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4x9xui8>, %w: tensor<6x2x2xui8>) -> tensor<2x6x4xi32> {
  // CHECK: "ttir.typecast"(%arg0) {{.*}} -> tensor<2x4x9xi32>
  // CHECK: "ttir.slice_static"({{.*}} {begins = array<i64: 0, 0, 0>, ends = array<i64: 2, 7, 4>, step = array<i64: 1, 2, 1>}
  // CHECK: "ttir.matmul"({{.*}} : (tensor<2x8x2xi32>, tensor<2x2x3xi32>) -> tensor<2x8x3xi32>
  // CHECK: "ttir.slice_static"({{.*}} {begins = array<i64: 0, 2, 0>, ends = array<i64: 2, 9, 4>, step = array<i64: 1, 2, 1>}
  // CHECK: "ttir.matmul"
  // CHECK: "ttir.add"
  // CHECK-NOT: ttir.conv
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
    window = {stride = [2], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64}
    : (tensor<2x4x9xui8>, tensor<6x2x2xui8>) -> tensor<2x6x4xi32>
  return %0 : tensor<2x6x4xi32>
}
