// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// CHECK: error: stablehlo.all_gather is not supported in stage stablehlo-to-ttir
// CHECK-NEXT: at loc("-":7:8)
// CHECK: expected a collective among the members of groups of one device: replica_groups = {{\[\[0\]\]}}
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
    : (tensor<2x4xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

// CHECK: error: stablehlo.all_reduce is not supported in stage stablehlo-to-ttir
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: error: stablehlo.collective_permute is not supported in stage stablehlo-to-ttir
// CHECK: expected source_target_pairs of device 0 alone
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}
    : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: error: stablehlo.all_gather is not supported in stage stablehlo-to-ttir
// CHECK: expected groups that are the rows, the columns or all chips of the mesh (2, 2), in order
module attributes {ttcore.mesh_shape = array<i64: 2, 2>} {
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 3], [1, 2]]> : tensor<2x2xi64>}
    : (tensor<2x4xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
}

// -----

// CHECK: error: stablehlo.all_reduce is not supported in stage stablehlo-to-ttir
// CHECK: expected a body of one op that is add, maximum, minimum, multiply, and, or, xor
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.subtract %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}

// -----

// CHECK: error: stablehlo.collective_permute is not supported in stage stablehlo-to-ttir
// CHECK: expected source_target_pairs of 2 chips, each of which is a target once
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 2]]> : tensor<1x2xi64>}
    : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}

// -----

// The numbers of replicas are not the numbers of chips here. The result would be the operand, which is wrong.
// CHECK: error: stablehlo.all_reduce is not supported in stage stablehlo-to-ttir
// CHECK: expected a module of 4 replicas or 4 partitions, as the mesh has chips
module attributes {ttcore.mesh_shape = array<i64: 2, 2>, mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}

// -----

// CHECK: error: stablehlo.collective_permute is not supported in stage stablehlo-to-ttir
// CHECK: expected a module of 2 replicas or 2 partitions, as the mesh has chips
module attributes {ttcore.mesh_shape = array<i64: 1, 2>, mhlo.num_partitions = 8 : i32} {
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>}
    : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}

// -----

// One chip cannot be eight partitions.
// CHECK: error: stablehlo.partition_id is not supported in stage stablehlo-to-ttir
// CHECK: expected a module of 1 replicas or 1 partitions, as the mesh has chips
module attributes {mhlo.num_partitions = 8 : i32} {
func.func @main() -> tensor<ui32> {
  %0 = stablehlo.partition_id : tensor<ui32>
  return %0 : tensor<ui32>
}
}
