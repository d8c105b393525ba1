// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// CHECK: error: stablehlo.custom_call is not supported in stage stablehlo-to-ttir
// CHECK: @unheard_of
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.custom_call @unheard_of(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// CHECK: error: stablehlo.custom_call is not supported in stage stablehlo-to-ttir
// CHECK: accepted is a mark that leaves the shape as it is, as on one device
func.func @main(%x: tensor<2x4xf32>) -> tensor<1x4xf32> {
  %0 = stablehlo.custom_call @SPMDFullToShardShape(%x) {mhlo.sharding = "{manual}"} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}
