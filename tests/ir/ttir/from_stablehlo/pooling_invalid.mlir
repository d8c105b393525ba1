// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// StableHLO does not fix the order in which the elements of a window are combined. A difference depends on it.
// CHECK: error: stablehlo.reduce_window is not supported in stage stablehlo-to-ttir
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x5xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.subtract %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {window_dimensions = array<i64: 1, 2>} : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}
