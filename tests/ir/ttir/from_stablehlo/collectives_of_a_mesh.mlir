// RUN: %opt --step stablehlo-to-ttir %s | %check

// The rows of the mesh are groups along axis 1, and all chips together take both axes.
// CHECK-LABEL: @main(
// CHECK: %[[GATHERED:.*]] = "ttir.all_gather"(%arg0) {all_gather_dim = 1 : i64, cluster_axis = 1 : i64} : (tensor<6x4xf32>) -> tensor<6x12xf32>
// CHECK: %[[COLUMNS:.*]] = "ttir.all_reduce"(%[[GATHERED]]) {cluster_axis = 0 : i64}
// CHECK: %[[ALL:.*]] = "ttir.all_reduce"(%[[COLUMNS]]) {cluster_axis = 1 : i64}
// CHECK: %[[HALF:.*]] = "ttir.reduce_scatter"(%[[ALL]]) {cluster_axis = 0 : i64, scatter_dim = 0 : i64} : (tensor<6x12xf32>) -> tensor<3x12xf32>
// CHECK: %[[SENT:.*]] = "ttir.collective_permute"(%[[HALF]]) {source_target_pairs = array<i64: 0, 1, 1, 0>}
// CHECK: return %[[SENT]]
module attributes {ttcore.mesh_shape = array<i64: 2, 3>} {
func.func @main(%x: tensor<6x4xf32>) -> tensor<3x12xf32> {
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 1 : i64,
    replica_groups = dense<[[0, 1, 2], [3, 4, 5]]> : tensor<2x3xi64>} : (tensor<6x4xf32>) -> tensor<6x12xf32>
  %1 = "stablehlo.all_reduce"(%0) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1, 2, 3, 4, 5]]> : tensor<1x6xi64>} : (tensor<6x12xf32>) -> tensor<6x12xf32>
  %2 = "stablehlo.reduce_scatter"(%1) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {scatter_dimension = 0 : i64, replica_groups = dense<[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>}
    : (tensor<6x12xf32>) -> tensor<3x12xf32>
  %3 = "stablehlo.collective_permute"(%2) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}
    : (tensor<3x12xf32>) -> tensor<3x12xf32>
  return %3 : tensor<3x12xf32>
}
}

// -----

// With two partitions and one replica, a group of replicas has one chip.
// CHECK-LABEL: @main(
// CHECK-NOT: all_reduce
// CHECK: %[[IDS:.*]] = "ttir.arange"() {{.*}} -> tensor<2xi32>
// CHECK: %[[OWN:.*]] = "ttir.mesh_partition"(%[[IDS]]) {cluster_axis = 1 : i64, dim = 0 : i64} : (tensor<2xi32>) -> tensor<1xi32>
// CHECK: %[[WIDE:.*]] = "ttir.typecast"(%[[OWN]]) {dtype = ui32}
// CHECK: %[[ID:.*]] = "ttir.reshape"(%[[WIDE]]) {shape = array<i64>}
// CHECK: return %arg0, %[[ID]]
module attributes {ttcore.mesh_shape = array<i64: 1, 2>, mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<ui32>) {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.partition_id : tensor<ui32>
  return %0, %1 : tensor<4xf32>, tensor<ui32>
}
}
