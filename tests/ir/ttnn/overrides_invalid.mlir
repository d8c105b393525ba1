// RUN: env TT_TORCH_OPTIMIZATION_LEVEL=2 TT_TORCH_OPTIMIZER_OVERRIDES="override-output-layout=first=bf16" %opt --expect-error --step ttir-to-ttnn --step layouts --step overrides %s | filecheck %s --check-prefix=TYPE
// TYPE: override_output_layout=bf16 cannot be followed for ttnn.exp (first): its result is Float32 in Tile
// RUN: env TT_TORCH_OPTIMIZATION_LEVEL=2 TT_TORCH_OPTIMIZER_OVERRIDES="insert-memreconfig=first=1" %opt --expect-error --step ttir-to-ttnn --step layouts --step overrides %s | filecheck %s --check-prefix=OPERAND
// OPERAND: insert_memreconfig=1 cannot be followed for ttnn.exp (first): it has 1 operands
// RUN: env TT_TORCH_OPTIMIZATION_LEVEL=2 TT_TORCH_OPTIMIZER_OVERRIDES="override-conv2d-config=first=act_block_h_override#32" %opt --expect-error --step ttir-to-ttnn --step layouts --step overrides %s | filecheck %s --check-prefix=CONV
// CONV: only ttnn.conv2d has such a configuration
// RUN: env TT_TORCH_OPTIMIZATION_LEVEL=2 TT_TORCH_OPTIMIZER_OVERRIDES="override-output-layout=first=9x1:block_sharded" %opt --expect-error --step ttir-to-ttnn --step layouts --step overrides --step optimize %s | filecheck %s --check-prefix=GRID
// GRID: the chip has 8x8 cores. The optimizer itself chooses from dram:interleaved
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = "ttir.exp"(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32> loc("first")
  return %0 : tensor<64x64xf32>
}
