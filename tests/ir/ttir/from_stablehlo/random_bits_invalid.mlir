// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// CHECK: error: stablehlo.rng_bit_generator is not supported in stage stablehlo-to-ttir
// CHECK: expected a state of ui64, two for THREE_FRY and DEFAULT, two or three for PHILOX, and integers as results
func.func @main(%a: tensor<3xui64>) -> tensor<4xui32> {
  %0, %1 = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : (tensor<3xui64>) -> (tensor<3xui64>, tensor<4xui32>)
  return %1 : tensor<4xui32>
}

// -----

// CHECK: error: stablehlo.rng_bit_generator is not supported in stage stablehlo-to-ttir
func.func @main(%a: tensor<2xui64>) -> tensor<4xf32> {
  %0, %1 = stablehlo.rng_bit_generator %a, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xf32>)
  return %1 : tensor<4xf32>
}
