// RUN: %opt --step fuse %s | %check

// A scale and a bias per channel, and a ReLU, are fused.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x16x3xf32>, %w: tensor<5x3x3x3xf32> {ttcore.argument_type = "parameter"}, %s: tensor<1x1x1x5xf32> {ttcore.argument_type = "parameter"}, %b: tensor<1x1x1x5xf32> {ttcore.argument_type = "parameter"}) -> tensor<1x1x16x5xf32> {
  // CHECK: [[W:%[0-9]+]] = "ttir.multiply"(%arg1, {{.*}} -> tensor<5x3x3x3xf32>
  // CHECK: "ttir.conv2d"(%arg0, [[W]], %arg3) {activation = "relu"
  // CHECK-NEXT: return
  %0 = "ttir.conv2d"(%x, %w) {batch_size = 1 : i64, input_height = 4 : i64, input_width = 4 : i64, in_channels = 3 : i64, out_channels = 5 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x16x3xf32>, tensor<5x3x3x3xf32>) -> tensor<1x1x16x5xf32>
  %1 = "ttir.multiply"(%0, %s) : (tensor<1x1x16x5xf32>, tensor<1x1x1x5xf32>) -> tensor<1x1x16x5xf32>
  %2 = "ttir.add"(%1, %b) : (tensor<1x1x16x5xf32>, tensor<1x1x1x5xf32>) -> tensor<1x1x16x5xf32>
  %3 = "ttir.relu"(%2) : (tensor<1x1x16x5xf32>) -> tensor<1x1x16x5xf32>
  return %3 : tensor<1x1x16x5xf32>
}

// -----

// An op after the activation is not fused.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x16x3xf32>, %w: tensor<5x3x3x3xf32> {ttcore.argument_type = "parameter"}, %b: tensor<1x1x1x5xf32> {ttcore.argument_type = "parameter"}) -> tensor<1x1x16x5xf32> {
  // CHECK: [[C:%[0-9]+]] = "ttir.conv2d"(%arg0, %arg1) {activation = "relu"
  // CHECK: "ttir.add"([[C]], %arg2)
  %0 = "ttir.conv2d"(%x, %w) {batch_size = 1 : i64, input_height = 4 : i64, input_width = 4 : i64, in_channels = 3 : i64, out_channels = 5 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x16x3xf32>, tensor<5x3x3x3xf32>) -> tensor<1x1x16x5xf32>
  %1 = "ttir.relu"(%0) : (tensor<1x1x16x5xf32>) -> tensor<1x1x16x5xf32>
  %2 = "ttir.add"(%1, %b) : (tensor<1x1x16x5xf32>, tensor<1x1x1x5xf32>) -> tensor<1x1x16x5xf32>
  return %2 : tensor<1x1x16x5xf32>
}

// -----

// A scale that depends on the input is not fused.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x16x3xf32>, %w: tensor<5x3x3x3xf32> {ttcore.argument_type = "parameter"}, %s: tensor<1x1x1x5xf32>) -> tensor<1x1x16x5xf32> {
  // CHECK: [[C:%[0-9]+]] = "ttir.conv2d"(%arg0, %arg1)
  // CHECK: "ttir.multiply"([[C]], %arg2)
  %0 = "ttir.conv2d"(%x, %w) {batch_size = 1 : i64, input_height = 4 : i64, input_width = 4 : i64, in_channels = 3 : i64, out_channels = 5 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x16x3xf32>, tensor<5x3x3x3xf32>) -> tensor<1x1x16x5xf32>
  %1 = "ttir.multiply"(%0, %s) : (tensor<1x1x16x5xf32>, tensor<1x1x1x5xf32>) -> tensor<1x1x16x5xf32>
  return %1 : tensor<1x1x16x5xf32>
}

// -----

// Batch norm becomes a scale and a bias.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4x6xf32>,%s: tensor<4xf32>,%o: tensor<4xf32>,%m: tensor<4xf32>,%v: tensor<4xf32>) -> tensor<2x4x6xf32> {
  // CHECK: [[F:%[0-9]+]] = "ttir.multiply"(%arg1, {{.*}}
  // CHECK: "ttir.reshape"({{.*}}) {shape = array<i64: 1, 4, 1>}
  // CHECK-NOT: batch_norm
  %0 = "ttir.batch_norm_inference"(%x, %s, %o, %m, %v) {dimension = 1 : i64, epsilon = 1.0e-5 : f32} : (tensor<2x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}
