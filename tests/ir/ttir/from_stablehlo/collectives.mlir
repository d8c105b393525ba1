// RUN: %opt --step stablehlo-to-ttir %s | %check

// In a group of one, a device gets its own value; a reduction may widen its type. Without a source, it gets zeros.
// CHECK-LABEL: @main(
// CHECK-NOT: stablehlo
// CHECK: %[[WIDE:.*]] = "ttir.typecast"(%arg0) {dtype = f32}
// CHECK: %[[NONE:.*]] = "ttir.full"() {fill_value = 0.000000e+00 : f64, shape = array<i64: 2, 4>}
// CHECK: %[[ID:.*]] = "ttir.full"() {fill_value = 0 : {{.*}}, shape = array<i64>}
// CHECK: return %[[WIDE]], %[[NONE]], %[[ID]]
#alone = dense<0> : tensor<1x1xi64>
func.func @main(%x: tensor<2x4xbf16>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<ui32>) {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = #alone} : (tensor<2x4xbf16>) -> tensor<2x4xf32>
  %1 = "stablehlo.all_gather"(%0) {all_gather_dim = 1 : i64, replica_groups = #alone} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = "stablehlo.all_to_all"(%1) {split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 1 : i64,
    replica_groups = #alone} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = "stablehlo.collective_broadcast"(%2) {replica_groups = #alone} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = "stablehlo.collective_permute"(%3) {source_target_pairs = dense<0> : tensor<1x2xi64>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %5 = "stablehlo.collective_permute"(%3) {source_target_pairs = dense<> : tensor<0x2xi64>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %6 = stablehlo.replica_id : tensor<ui32>
  return %4, %5, %6 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<ui32>
}
