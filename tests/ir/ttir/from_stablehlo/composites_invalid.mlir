// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// An unknown composite is replaced by its decomposition, which has an op without a rule here.
// CHECK: error: stablehlo.cholesky is not supported in stage stablehlo-to-ttir
// CHECK: "-":11:8
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.composite "tenstorrent.unheard_of" %x {decomposition = @body} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
func.func private @body(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.cholesky %x : tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
