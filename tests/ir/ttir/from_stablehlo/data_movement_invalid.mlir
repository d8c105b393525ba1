// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// Zeros between elements have no TTNN op.
// CHECK: error: stablehlo.pad is not supported in stage stablehlo-to-ttir
// CHECK: at loc("-":8:8)
func.func @main(%a: tensor<4xf32>) -> tensor<7xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %a, %zero, low = [0], high = [0], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}

// -----

// CHECK: error: stablehlo.dynamic_slice is not supported in stage stablehlo-to-ttir
func.func @main(%a: tensor<4xf32>, %at: tensor<i64>) -> tensor<2xf32> {
  %0 = stablehlo.dynamic_slice %a, %at, sizes = [2] : (tensor<4xf32>, tensor<i64>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
