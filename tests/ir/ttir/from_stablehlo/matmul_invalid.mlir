// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// CHECK: error: stablehlo.triangular_solve is not supported in stage stablehlo-to-ttir
// CHECK: expected real matrices of at most 32 rows
func.func @main(%a: tensor<33x33xf32>, %b: tensor<33x3xf32>) -> tensor<33x3xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %b) {
    left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>
  } : (tensor<33x33xf32>, tensor<33x3xf32>) -> tensor<33x3xf32>
  return %0 : tensor<33x3xf32>
}
