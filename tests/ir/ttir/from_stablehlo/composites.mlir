// RUN: %opt --step stablehlo-to-ttir %s | %check

// A composite is known by its name; its decomposition is dropped.
// CHECK-LABEL: @main(
// CHECK-NOT: @body
func.func @main(%x: tensor<2x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  // CHECK: "ttir.layer_norm"(%arg0, %arg1, %arg2) {epsilon = 9.99{{.*}} : f32, operandSegmentSizes = array<i32: 1, 1, 1>}
  %0 = stablehlo.composite "tenstorrent.layer_norm" %x, %w, %b {
    composite_attributes = {epsilon = 1.0e-05 : f64}, decomposition = @body
  } : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  // CHECK: "ttir.gelu"
  %1 = stablehlo.composite "tenstorrent.gelu" %0 {decomposition = @unary} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}
func.func private @body(%x: tensor<2x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  return %x : tensor<2x8xf32>
}
func.func private @unary(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  return %x : tensor<2x8xf32>
}

// -----

// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4x6xf32>, %s: tensor<4xf32>, %o: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>)
    -> tensor<2x4x6xf32> {
  // CHECK: "ttir.batch_norm_inference"(%arg0, %arg1, %arg2, %arg3, %arg4) {dimension = 1 : i64, epsilon = 9.99
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) {epsilon = 1.0e-5 : f32, feature_index = 1 : i64}
    : (tensor<2x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}
