// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// CHECK: error: stablehlo.rng_bit_generator is not supported in stage stablehlo-to-ttir
// CHECK-NEXT: at loc("-":7:18)
func.func @main() -> tensor<4xui32> {
  %state = stablehlo.constant dense<1> : tensor<2xui32>
  %next, %bits = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui32>) -> (tensor<2xui32>, tensor<4xui32>)
  return %bits : tensor<4xui32>
}

// -----

// CHECK: error: stablehlo.constant is not supported in stage stablehlo-to-ttir
// CHECK: expected integers of 32 bits, and larger bounds
func.func @main(%x: tensor<2xi64>) -> tensor<2xi64> {
  %large = stablehlo.constant dense<[1, 4294967296]> : tensor<2xi64>
  %0 = stablehlo.add %x, %large : tensor<2xi64>
  return %0 : tensor<2xi64>
}
