// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// CHECK: error: stablehlo.clamp is not supported in stage stablehlo-to-ttir
// CHECK-NEXT: at loc("-":7:8)
// CHECK: expected what adds, multiplies, divides or moves complex numbers
func.func @main(%z: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = stablehlo.clamp %z, %z, %z : tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}
