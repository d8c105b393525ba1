// RUN: env TT_TORCH_OPTIMIZATION_LEVEL=1 TT_TORCH_OPTIMIZER_OVERRIDES="override-output-layout=first=2x2:block_sharded,s*=l1 insert-memreconfig=sum=0:1" %opt --step ttir-to-ttnn --step layouts --step overrides %s | %check
// RUN: env TT_TORCH_OPTIMIZATION_LEVEL=1 TT_TORCH_OPTIMIZER_OVERRIDES="override-output-layout=first=2x2:block_sharded,s*=l1 insert-memreconfig=sum=0:1" %opt --step ttir-to-ttnn --step layouts --step overrides --step optimize %s | filecheck %s --check-prefix=DONE
// RUN: env TT_TORCH_OPTIMIZATION_LEVEL=1 TT_TORCH_OPTIMIZER_OVERRIDES="override-output-layout=first=2x2:block_sharded" %opt --step ttir-to-ttnn --step layouts --step overrides --step optimize %s | filecheck %s --check-prefix=OFF
// OFF-NOT: override_output_layout

// Overrides are attributes of the ops that they are for. The optimizer reads and removes them.
// CHECK-LABEL: @main(
// DONE-LABEL: @main(
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // CHECK: "ttnn.exp"({{.*}}tt.override_output_layout = "2x2:block_sharded"
  // CHECK: "ttnn.add"({{.*}}tt.insert_memreconfig = "0:1", tt.override_output_layout = "l1"
  // CHECK: return
  // DONE: "ttnn.exp"({{.*}} -> tensor<64x64xf32, #ttnn.layout<"Float32", "Tile", "L1", "BlockSharded", array<i64: 2, 2>>>
  // DONE: "ttnn.to_memory_config"({{.*}} -> tensor<64x64xf32, #ttnn.layout<"Float32", "Tile", "L1", "Interleaved"
  // DONE: "ttnn.to_memory_config"({{.*}} -> tensor<64x64xf32, #ttnn.layout<"Float32", "Tile", "L1", "Interleaved"
  // DONE: "ttnn.add"({{.*}} -> tensor<64x64xf32, #ttnn.layout<"Float32", "Tile", "L1", "Interleaved"
  // DONE: return
  %0 = "ttir.exp"(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32> loc("first")
  %1 = "ttir.add"(%0, %x) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("sum")
  return %1 : tensor<64x64xf32>
}
