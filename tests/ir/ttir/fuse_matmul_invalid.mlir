// RUN: %opt --step fuse --expect-error %s | %check

func.func @main(%x: tensor<2x4xf32>, %w: tensor<5x4xf32>) -> tensor<2x5xf32> {
  // CHECK: error: ttir.matmul: got inner dimensions 4 and 5 differ
  %0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<5x4xf32>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}
