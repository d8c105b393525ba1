// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// CHECK: error: stablehlo.composite is not supported in stage stablehlo-to-ttir
// CHECK: at loc("-":7:8)
// CHECK: "tenstorrent.unheard_of"
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = stablehlo.composite "tenstorrent.unheard_of" %x {decomposition = @body} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
func.func private @body(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  return %x : tensor<2x8xf32>
}
