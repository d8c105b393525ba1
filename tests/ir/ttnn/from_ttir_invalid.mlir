// RUN: %opt --step ttir-to-ttnn --expect-error %s | %check

// The step `fuse` expands batch norm before this stage, so this stage has no rule for it.
func.func @main(%x: tensor<2x4xf32>,%s: tensor<4xf32>,%o: tensor<4xf32>,%m: tensor<4xf32>,%v: tensor<4xf32>) -> tensor<2x4xf32> {
  // CHECK: error: ttir.batch_norm_inference is not supported in stage ttir-to-ttnn
  // CHECK-NEXT: at loc("-":7:8)
  %0 = "ttir.batch_norm_inference"(%x, %s, %o, %m, %v) {dimension = 1 : i64, epsilon = 1.0e-5 : f32} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
