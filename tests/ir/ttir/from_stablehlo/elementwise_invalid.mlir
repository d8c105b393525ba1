// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// CHECK: error: stablehlo.set_dimension_size is not supported in stage stablehlo-to-ttir
// CHECK-NEXT: at loc("-":8:8)
// CHECK: stablehlo.set_dimension_size %arg0, %arg1, dim = 0
// CHECK: rewrite the line with supported ops
func.func @main(%a: tensor<4x4xf32>, %n: tensor<i32>) -> tensor<4x4xf32> {
  %0 = stablehlo.set_dimension_size %a, %n, dim = 0 : (tensor<4x4xf32>, tensor<i32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// An op that came from PyTorch is named by its ATen op and the user's line.
// CHECK: error: aten.polar.default is not supported in stage stablehlo-to-ttir
// CHECK-NEXT: at model.py:12
// CHECK-NEXT: node polar_1 needs
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xcomplex<f32>> {
  %0 = stablehlo.complex %a, %b : tensor<4xcomplex<f32>> loc("polar_1: aten.polar.default"("model.py":12:0))
  return %0 : tensor<4xcomplex<f32>>
}

// -----

// A bit cast of 64-bit types is refused, since the device replaces them by 32-bit types.
// CHECK: error: stablehlo.bitcast_convert is not supported in stage stablehlo-to-ttir
func.func @main(%x: tensor<3xf64>) -> tensor<3xi64> {
  %0 = stablehlo.bitcast_convert %x : (tensor<3xf64>) -> tensor<3xi64>
  return %0 : tensor<3xi64>
}
