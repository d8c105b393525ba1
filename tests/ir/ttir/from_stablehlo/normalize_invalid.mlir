// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// The device has no type that can replace floats of eight bits.
// CHECK: error: ttir.add is not supported in stage stablehlo-to-ttir
// CHECK: f8E4M3FN
func.func @main(%a: tensor<2xf8E4M3FN>) -> tensor<2xf8E4M3FN> {
  %0 = stablehlo.add %a, %a : tensor<2xf8E4M3FN>
  return %0 : tensor<2xf8E4M3FN>
}
