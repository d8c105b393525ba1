// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// A slice whose size is computed by the program is not supported.
// CHECK: error: stablehlo.real_dynamic_slice is not supported in stage stablehlo-to-ttir
func.func @main(%x: tensor<8xf32>, %at: tensor<1xi64>) -> tensor<4xf32> {
  %0 = stablehlo.real_dynamic_slice %x, %at, %at, %at
    : (tensor<8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
