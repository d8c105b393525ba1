// RUN: %opt --step expand-collectives %s | %check

// What has no table becomes gathers and parts. The rows come first when a value is taken apart, and last when it is
// put together.
// CHECK-LABEL: @main(
// CHECK: %[[ROW:.*]] = "ttir.mesh_partition"(%arg0) {cluster_axis = 0 : i64, dim = 0 : i64} : (tensor<8x6xf32>) -> tensor<4x6xf32>
// CHECK: %[[OWN:.*]] = "ttir.mesh_partition"(%[[ROW]]) {cluster_axis = 1 : i64, dim = 0 : i64} : (tensor<4x6xf32>) -> tensor<2x6xf32>
// CHECK: %[[EACH:.*]] = "ttir.all_gather"(%[[OWN]]) {all_gather_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<2x6xf32>) -> tensor<4x6xf32>
// CHECK: %[[SENT:.*]] = "ttir.mesh_partition"(%[[EACH]]) {cluster_axis = 1 : i64, dim = 1 : i64} : (tensor<4x6xf32>) -> tensor<4x3xf32>
// CHECK: %[[ALL:.*]] = "ttir.all_gather"
// CHECK-SAME: cluster_axis = 0 : i64
// CHECK: %[[FIRST:.*]] = "ttir.slice_static"
// CHECK: return %[[SENT]]
module attributes {ttcore.mesh_shape = array<i64: 2, 2>} {
func.func @main(%x: tensor<8x6xf32>) -> (tensor<4x3xf32>, tensor<2x6xf32>) {
  %0 = "ttir.mesh_shard"(%x) {shard_type = "devices", shard_direction = "full_to_shard", shard_dims = array<i64: 0, 0>,
    shard_shape = array<i64: 4, 1>} : (tensor<8x6xf32>) -> tensor<2x6xf32>
  %1 = "ttir.all_to_all"(%0) {split_dim = 1 : i64, concat_dim = 0 : i64, split_count = 2 : i64,
    replica_groups = [array<i64: 0, 1>, array<i64: 2, 3>]} : (tensor<2x6xf32>) -> tensor<4x3xf32>
  %2 = "ttir.collective_broadcast"(%0) {replica_groups = [array<i64: 0, 2>, array<i64: 1, 3>]}
    : (tensor<2x6xf32>) -> tensor<2x6xf32>
  return %1, %2 : tensor<4x3xf32>, tensor<2x6xf32>
}
}

// -----

// What they are made of joins its neighbours: a gather of the parts of a sum is an all_reduce, and the own part of what
// was gathered is what the chip had.
// CHECK-LABEL: @main(
// CHECK-NEXT: %[[SUM:.*]] = "ttir.all_reduce"(%arg0) {cluster_axis = 1 : i64}
// CHECK-NEXT: return %[[SUM]], %arg1
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<4x6xf32>, %y: tensor<2x6xf32>) -> (tensor<4x6xf32>, tensor<2x6xf32>) {
  %0 = "ttir.reduce_scatter"(%x) {scatter_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<4x6xf32>) -> tensor<2x6xf32>
  %1 = "ttir.mesh_shard"(%0) {shard_type = "devices", shard_direction = "shard_to_full", shard_dims = array<i64: -1, 0>,
    shard_shape = array<i64: 2, 1>} : (tensor<2x6xf32>) -> tensor<4x6xf32>
  %2 = "ttir.mesh_shard"(%y) {shard_type = "devices", shard_direction = "shard_to_full", shard_dims = array<i64: -1, 0>,
    shard_shape = array<i64: 2, 1>} : (tensor<2x6xf32>) -> tensor<4x6xf32>
  %3 = "ttir.mesh_shard"(%2) {shard_type = "devices", shard_direction = "full_to_shard", shard_dims = array<i64: -1, 0>,
    shard_shape = array<i64: 2, 1>} : (tensor<4x6xf32>) -> tensor<2x6xf32>
  return %1, %3 : tensor<4x6xf32>, tensor<2x6xf32>
}
}
