// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// No device type stands for complex numbers.
// CHECK: error: ttir.add is not supported in stage stablehlo-to-ttir
// CHECK: complex<f32>
func.func @main(%a: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  %0 = stablehlo.add %a, %a : tensor<2xcomplex<f32>>
  return %0 : tensor<2xcomplex<f32>>
}
