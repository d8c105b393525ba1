// RUN: %opt --step fuse --expect-error %s | %check

func.func @main(%x: tensor<4x4xf32>) -> tensor<4x5xf32> {
  // CHECK: error: ttir.softmax: got result tensor<4x5xf32>, expected tensor<4x4xf32>
  %0 = "ttir.softmax"(%x) {dimension = 1 : i64, numeric_stable = true} : (tensor<4x4xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}
