// RUN: %opt --step stablehlo-to-ttir %s | %check

// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4x6xf32>, %s: tensor<4xf32>, %o: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>)
    -> tensor<2x4x6xf32> {
  // CHECK: "ttir.batch_norm_inference"(%arg0, %arg1, %arg2, %arg3, %arg4) {dimension = 1 : i64, epsilon = 9.99
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) {epsilon = 1.0e-5 : f32, feature_index = 1 : i64}
    : (tensor<2x4x6xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}

// -----

// In training, the statistics of the batch are results, too.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4x6xf32>, %s: tensor<4xf32>, %o: tensor<4xf32>)
    -> (tensor<2x4x6xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK: [[M:%[0-9]+]] = "ttir.mean"(%arg0) {dim_arg = array<i64: 0, 2>
  // CHECK: [[SPREAD:%[0-9]+]] = "ttir.reshape"([[M]]) {shape = array<i64: 1, 4, 1>}
  // CHECK: [[C:%[0-9]+]] = "ttir.subtract"(%arg0, [[SPREAD]])
  // CHECK: [[SQUARE:%[0-9]+]] = "ttir.multiply"([[C]], [[C]])
  // CHECK: [[V:%[0-9]+]] = "ttir.mean"([[SQUARE]])
  // CHECK: return {{%[0-9]+}}, [[M]], [[V]]
  %0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) {epsilon = 1.0e-5 : f32, feature_index = 1 : i64}
    : (tensor<2x4x6xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4x6xf32>, tensor<4xf32>, tensor<4xf32>)
  return %0#0, %0#1, %0#2 : tensor<2x4x6xf32>, tensor<4xf32>, tensor<4xf32>
}
