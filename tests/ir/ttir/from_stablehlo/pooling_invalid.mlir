// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// A selection of the last of equal maxima is supported for windows of at most 128 elements.
// CHECK: error: stablehlo.select_and_scatter is not supported in stage stablehlo-to-ttir
func.func @main(%x: tensor<1x1x24x24xf32>, %s: tensor<1x1x2x2xf32>) -> tensor<1x1x24x24xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {window_dimensions = array<i64: 1, 1, 12, 12>, window_strides = array<i64: 1, 1, 12, 12>}
    : (tensor<1x1x24x24xf32>, tensor<1x1x2x2xf32>, tensor<f32>) -> tensor<1x1x24x24xf32>
  return %0 : tensor<1x1x24x24xf32>
}

// -----

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
