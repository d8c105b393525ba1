// RUN: %opt --step fuse %s | %check

// Transposes, bias and activation.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xf32>, %w: tensor<5x4xf32>, %b: tensor<5xf32>) -> tensor<2x5xf32> {
  // CHECK-NEXT: "ttir.linear"(%arg0, %arg1, %arg2) {activation = "relu"{{.*}} transpose_a = false, transpose_b = true}
  // CHECK-NEXT: return
  %0 = "ttir.permute"(%w) {permutation = array<i64: 1, 0>} : (tensor<5x4xf32>) -> tensor<4x5xf32>
  %1 = "ttir.matmul"(%x, %0) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  %2 = "ttir.add"(%b, %1) : (tensor<5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
  %3 = "ttir.relu"(%2) : (tensor<2x5xf32>) -> tensor<2x5xf32>
  return %3 : tensor<2x5xf32>
}

// -----

// A column or a scalar is no bias.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x5xf32>, %b: tensor<2x1xf32>, %s: tensor<f32>) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
  // CHECK-NOT: ttir.linear
  %0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  %1 = "ttir.add"(%0, %b) : (tensor<2x5xf32>, tensor<2x1xf32>) -> tensor<2x5xf32>
  %2 = "ttir.matmul"(%1, %1) {transpose_a = true, transpose_b = false} : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<5x5xf32>
  %3 = "ttir.add"(%2, %s) : (tensor<5x5xf32>, tensor<f32>) -> tensor<5x5xf32>
  %4 = "ttir.slice_static"(%3) {begins = array<i64: 0, 0>, ends = array<i64: 2, 5>, step = array<i64: 1, 1>} : (tensor<5x5xf32>) -> tensor<2x5xf32>
  return %1, %4 : tensor<2x5xf32>, tensor<2x5xf32>
}

// -----

// The product is read twice.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x5xf32>, %b: tensor<5xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
  // CHECK: "ttir.matmul"
  // CHECK: "ttir.add"
  %0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  %1 = "ttir.add"(%0, %b) : (tensor<2x5xf32>, tensor<5xf32>) -> tensor<2x5xf32>
  return %0, %1 : tensor<2x5xf32>, tensor<2x5xf32>
}
