// RUN: %opt --step ttir-to-ttnn --step workarounds --expect-error %s | %check

func.func @main(%a: tensor<2x3xi32>, %b: tensor<2x4xi32>) -> tensor<2x4xi32> {
  // CHECK: error: ttir.matmul: got inner dimensions 3 and 2 differ
  %0 = "ttir.matmul"(%a, %b) {transpose_a = false, transpose_b = false} : (tensor<2x3xi32>, tensor<2x4xi32>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}
