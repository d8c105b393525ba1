// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// The padding value must be a constant.
// CHECK: error: stablehlo.pad is not supported in stage stablehlo-to-ttir
// CHECK: at loc("-":7:8)
func.func @main(%a: tensor<4xf32>, %value: tensor<f32>) -> tensor<7xf32> {
  %0 = stablehlo.pad %a, %value, low = [0], high = [0], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<7xf32>
  return %0 : tensor<7xf32>
}
