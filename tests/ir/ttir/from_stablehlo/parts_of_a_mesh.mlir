// RUN: %opt --step stablehlo-to-ttir %s | %check

// These ops have no table in the file format. They stay whole until TTNN, with the names and attributes of tt-mlir.
// CHECK-LABEL: @main(
// CHECK: %[[PARTS:.*]] = "ttir.mesh_shard"(%arg0) {shard_dims = array<i64: -1, 0>, shard_direction = "full_to_shard", shard_shape = array<i64: 2, 1>, shard_type = "devices"} : (tensor<4x6xf32>) -> tensor<2x6xf32>
// CHECK: %[[FIRST:.*]] = "ttir.collective_broadcast"(%[[PARTS]]) {replica_groups = [array<i64: 0, 1>]}
// CHECK: %[[SENT:.*]] = "ttir.all_to_all"(%[[FIRST]]) {concat_dim = 0 : i64, replica_groups = [array<i64: 0, 1>], split_count = 2 : i64, split_dim = 1 : i64} : (tensor<2x6xf32>) -> tensor<4x3xf32>
// CHECK: %[[WHOLE:.*]] = "ttir.mesh_shard"(%[[SENT]]) {shard_dims = array<i64: -1, 1>, shard_direction = "shard_to_full", shard_shape = array<i64: 1, 2>, {{.*}} -> tensor<4x6xf32>
// CHECK: return %[[WHOLE]]
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = stablehlo.custom_call @tt_mesh.mesh_shard(%x)
    {mhlo.frontend_attributes = {shard_direction = "full_to_shard", shard_dims = array<i64: -1, 0>}}
    : (tensor<4x6xf32>) -> tensor<2x6xf32>
  %1 = "stablehlo.collective_broadcast"(%0) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
    : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %2 = "stablehlo.all_to_all"(%1) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64,
    replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2x6xf32>) -> tensor<4x3xf32>
  %3 = stablehlo.custom_call @tt_mesh.mesh_shard(%2)
    {mhlo.frontend_attributes = {shard_direction = "shard_to_full", shard_dims = array<i64: -1, 1>}}
    : (tensor<4x3xf32>) -> tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}
}

// -----

// The real and the imaginary part of complex numbers are split by themselves.
// CHECK-LABEL: @main(
// CHECK-COUNT-2: "ttir.mesh_shard"({{.*}} : (tensor<4x6xf32>) -> tensor<2x6xf32>
// CHECK-NOT: "ttir.mesh_shard"
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<2x6xf32> {
  %0 = stablehlo.complex %x, %y : tensor<4x6xcomplex<f32>>
  %1 = stablehlo.custom_call @tt_mesh.mesh_shard(%0)
    {mhlo.frontend_attributes = {shard_direction = "full_to_shard", shard_dims = array<i64: -1, 0>}}
    : (tensor<4x6xcomplex<f32>>) -> tensor<2x6xcomplex<f32>>
  %2 = stablehlo.multiply %1, %1 : tensor<2x6xcomplex<f32>>
  %3 = stablehlo.real %2 : (tensor<2x6xcomplex<f32>>) -> tensor<2x6xf32>
  return %3 : tensor<2x6xf32>
}
}
