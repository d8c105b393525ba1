// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// An unknown composite is replaced by its decomposition, which has an op without a rule here.
// CHECK: error: stablehlo.map is not supported in stage stablehlo-to-ttir
// CHECK: "-":11:8
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.composite "tenstorrent.unheard_of" %x {decomposition = @body} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
func.func private @body(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %0 = "stablehlo.map"(%x) ({
  ^bb0(%e: tensor<f32>):
    stablehlo.return %e : tensor<f32>
  }) {dimensions = array<i64: 0, 1>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
