// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// The bounds of random integers must be constants.
// CHECK: error: stablehlo.rng is not supported in stage stablehlo-to-ttir
// CHECK-NEXT: at loc("-":9:8)
func.func @main(%low: tensor<i32>) -> tensor<4xi32> {
  %high = stablehlo.constant dense<9> : tensor<i32>
  %shape = stablehlo.constant dense<4> : tensor<1xi64>
  %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

// A range with more integers than float32 can distinguish is not supported.
// CHECK: error: stablehlo.rng is not supported in stage stablehlo-to-ttir
func.func @main() -> tensor<4xi32> {
  %low = stablehlo.constant dense<0> : tensor<i32>
  %high = stablehlo.constant dense<100000000> : tensor<i32>
  %shape = stablehlo.constant dense<4> : tensor<1xi64>
  %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}
