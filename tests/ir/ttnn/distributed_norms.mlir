// RUN: %opt --step distributed-norms %s | %check

// 96 tiles lie on six rows of eight cores, two on each core.
// CHECK: %[[S:.*]] = "ttnn.empty"() : () -> tensor<1x1x32x128xf32, #ttnn.layout<"Float32", "Tile", "L1", "WidthSharded", array<i64: 1, 1>>>
// CHECK-NEXT: "ttnn.create_global_semaphore"() {core_range_set = {core_ranges = [{end_coord = {x = 7 : i64, y = 7 : i64}, start_coord = {x = 0 : i64, y = 0 : i64}}]}, initial_value = 0 : i64, out = {global_id = 1 : i64}}
// CHECK-NEXT: %[[W:.*]] = "ttnn.reshape"(%arg1) {shape = array<i64: 96, 32>}
// CHECK-NEXT: %[[N:.*]] = "ttnn.distributed_rms_norm"(%arg0, %[[W]], %[[S]]) {cluster_axis = 1 : i64, {{.*}} program_config = {block_h = 1 : i64, block_w = 2 : i64, compute_with_storage_grid_size = {x = 8 : i64, y = 6 : i64}, inplace = false, subblock_w = 1 : i64}, semaphore = {global_id = 1 : i64}} : {{.*}} -> tensor<1x1x8x3072xf32, #ttnn.layout<"Float32", "Tile", "L1", "WidthSharded", array<i64: 1, 48>>>
// CHECK-NEXT: %[[R:.*]] = "ttnn.to_memory_config"(%[[N]])
// CHECK-NEXT: return %[[R]]
#tiles = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
module attributes {ttcore.mesh_shape = array<i64: 1, 4>} {
func.func @main(%x: tensor<1x1x8x3072xf32, #tiles>, %w: tensor<3072xf32, #tiles>) -> tensor<1x1x8x3072xf32, #tiles> {
  %0 = "ttnn.distributed_rms_norm"(%x, %w) {cluster_axis = 1 : i64, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x8x3072xf32, #tiles>, tensor<3072xf32, #tiles>) -> tensor<1x1x8x3072xf32, #tiles>
  return %0 : tensor<1x1x8x3072xf32, #tiles>
}
}
