// RUN: %opt --step legality --expect-error %s | %check

// Each refused form has legal forms beside it. They show that it is refused for the reason in its comment.

// Refused: a norm of rows that are split over cores by height. Blocks are taken.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.rms_norm, and ttnn {{.*}} does not take operands and a result that are HeightSharded
#rows = #ttnn.layout<"BFloat16", "Tile", "L1", "HeightSharded", array<i64: 2, 1>>
#blocks = #ttnn.layout<"BFloat16", "Tile", "L1", "BlockSharded", array<i64: 2, 2>>
func.func @main(%x: tensor<64x64xbf16, #blocks>, %y: tensor<64x64xbf16, #rows>) -> tensor<64x64xbf16, #rows> {
  %0 = "ttnn.rms_norm"(%x) {epsilon = 1.0e-05 : f32, operandSegmentSizes = array<i32: 1, 0>} : (tensor<64x64xbf16, #blocks>) -> tensor<64x64xbf16, #blocks>
  %1 = "ttnn.rms_norm"(%y) {epsilon = 1.0e-05 : f32, operandSegmentSizes = array<i32: 1, 0>} : (tensor<64x64xbf16, #rows>) -> tensor<64x64xbf16, #rows> loc("illegal")
  return %1 : tensor<64x64xbf16, #rows>
}

// -----

// Refused: a change of the data type that also moves the value.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.typecast, and ttnn {{.*}} does not take operands and a result that are BlockSharded
#blocks = #ttnn.layout<"BFloat16", "Tile", "L1", "BlockSharded", array<i64: 2, 2>>
#wide = #ttnn.layout<"Float32", "Tile", "L1", "BlockSharded", array<i64: 2, 2>>
#dram = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<64x64xbf16, #blocks>) -> tensor<64x64xf32, #dram> {
  %0 = "ttnn.typecast"(%x) : (tensor<64x64xbf16, #blocks>) -> tensor<64x64xf32, #wide>
  %1 = "ttnn.typecast"(%x) : (tensor<64x64xbf16, #blocks>) -> tensor<64x64xf32, #dram> loc("illegal")
  return %1 : tensor<64x64xf32, #dram>
}

// -----

// Refused: operands of one op that are split in different ways.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.add, and ttnn {{.*}} does not take operands and a result that are BlockSharded and HeightSharded
#rows = #ttnn.layout<"BFloat16", "Tile", "L1", "HeightSharded", array<i64: 2, 1>>
#blocks = #ttnn.layout<"BFloat16", "Tile", "L1", "BlockSharded", array<i64: 2, 2>>
#dram = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<64x64xbf16, #blocks>, %y: tensor<64x64xbf16, #rows>, %z: tensor<64x64xbf16, #dram>) -> tensor<64x64xbf16, #blocks> {
  %0 = "ttnn.add"(%x, %z) : (tensor<64x64xbf16, #blocks>, tensor<64x64xbf16, #dram>) -> tensor<64x64xbf16, #blocks>
  %1 = "ttnn.add"(%x, %y) : (tensor<64x64xbf16, #blocks>, tensor<64x64xbf16, #rows>) -> tensor<64x64xbf16, #blocks> loc("illegal")
  return %1 : tensor<64x64xbf16, #blocks>
}

// -----

// Refused: a product without a configuration that says how it is computed.
// CHECK: ttnn.matmul, and ttnn {{.*}} does not take operands and a result that are BlockSharded
#blocks = #ttnn.layout<"BFloat16", "Tile", "L1", "BlockSharded", array<i64: 2, 2>>
#dram = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<64x64xbf16, #blocks>, %y: tensor<64x64xbf16, #dram>) -> tensor<64x64xbf16, #blocks> {
  %0 = "ttnn.matmul"(%x, %y) {transpose_a = false, transpose_b = false} : (tensor<64x64xbf16, #blocks>, tensor<64x64xbf16, #dram>) -> tensor<64x64xbf16, #blocks>
  return %0 : tensor<64x64xbf16, #blocks>
}

// -----

// Refused: a reshape that moves elements to other tiles, and an op that is not known to take parts.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.reshape, and ttnn {{.*}} does not take operands and a result that are BlockSharded
#blocks = #ttnn.layout<"BFloat16", "Tile", "L1", "BlockSharded", array<i64: 2, 2>>
func.func @main(%x: tensor<64x64xbf16, #blocks>) -> tensor<16x4x64xbf16, #blocks> {
  %0 = "ttnn.reshape"(%x) {shape = array<i64: 2, 32, 64>} : (tensor<64x64xbf16, #blocks>) -> tensor<2x32x64xbf16, #blocks>
  %1 = "ttnn.reshape"(%x) {shape = array<i64: 16, 4, 64>} : (tensor<64x64xbf16, #blocks>) -> tensor<16x4x64xbf16, #blocks> loc("illegal")
  return %1 : tensor<16x4x64xbf16, #blocks>
}

// -----

// CHECK: ttnn.sum, and ttnn {{.*}} does not take operands and a result that are BlockSharded
#blocks = #ttnn.layout<"BFloat16", "Tile", "L1", "BlockSharded", array<i64: 2, 2>>
#dram = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<64x64xbf16, #blocks>) -> tensor<64x1xbf16, #dram> {
  %0 = "ttnn.sum"(%x) {dim_arg = array<i64: 1>, keep_dim = true} : (tensor<64x64xbf16, #blocks>) -> tensor<64x1xbf16, #dram>
  return %0 : tensor<64x1xbf16, #dram>
}

// -----

// Refused: a bias of one row that is split over cores. A bias of the result's shape is taken in the result's parts.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.linear, and ttnn {{.*}} does not take operands and a result that are BlockSharded
#blocks = #ttnn.layout<"BFloat16", "Tile", "L1", "BlockSharded", array<i64: 2, 2>>
#dram = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<64x64xbf16, #blocks>, %w: tensor<64x64xbf16, #dram>, %b: tensor<64x64xbf16, #blocks>, %c: tensor<1x64xbf16, #blocks>) -> tensor<64x64xbf16, #blocks> {
  %0 = "ttnn.linear"(%x, %w, %b) {transpose_a = false, transpose_b = false, matmul_program_config = {MatmulMultiCoreReuseMultiCastProgramConfig = {in0_block_w = 1 : i64}}, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<64x64xbf16, #blocks>, tensor<64x64xbf16, #dram>, tensor<64x64xbf16, #blocks>) -> tensor<64x64xbf16, #blocks>
  %1 = "ttnn.linear"(%x, %w, %c) {transpose_a = false, transpose_b = false, matmul_program_config = {MatmulMultiCoreReuseMultiCastProgramConfig = {in0_block_w = 1 : i64}}, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<64x64xbf16, #blocks>, tensor<64x64xbf16, #dram>, tensor<1x64xbf16, #blocks>) -> tensor<64x64xbf16, #blocks> loc("illegal")
  return %1 : tensor<64x64xbf16, #blocks>
}

// -----

// Refused: two rows of tiles times a weight in parts in the banks of DRAM. One row is taken.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.matmul, and ttnn {{.*}} does not take operands and a result that are WidthSharded
#columns = #ttnn.layout<"BFloat16", "Tile", "L1", "WidthSharded", array<i64: 1, 2>>
#banks = #ttnn.layout<"BFloat16", "Tile", "DRAM", "WidthSharded", array<i64: 1, 2>>
func.func @main(%x: tensor<32x64xbf16, #columns>, %y: tensor<64x64xbf16, #columns>, %w: tensor<64x64xbf16, #banks>) -> tensor<64x64xbf16, #columns> {
  %0 = "ttnn.matmul"(%x, %w) {transpose_a = false, transpose_b = false, matmul_program_config = {MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig = {in0_block_w = 1, per_core_m = 1, per_core_n = 1}}} : (tensor<32x64xbf16, #columns>, tensor<64x64xbf16, #banks>) -> tensor<32x64xbf16, #columns>
  %1 = "ttnn.matmul"(%y, %w) {transpose_a = false, transpose_b = false, matmul_program_config = {MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig = {in0_block_w = 1, per_core_m = 2, per_core_n = 1}}} : (tensor<64x64xbf16, #columns>, tensor<64x64xbf16, #banks>) -> tensor<64x64xbf16, #columns> loc("illegal")
  return %1 : tensor<64x64xbf16, #columns>
}

// -----

// Refused: such a weight, transposed.
// CHECK: ttnn.matmul, and ttnn {{.*}} does not take operands and a result that are WidthSharded
#columns = #ttnn.layout<"BFloat16", "Tile", "L1", "WidthSharded", array<i64: 1, 2>>
#banks = #ttnn.layout<"BFloat16", "Tile", "DRAM", "WidthSharded", array<i64: 1, 2>>
func.func @main(%x: tensor<32x64xbf16, #columns>, %w: tensor<64x64xbf16, #banks>) -> tensor<32x64xbf16, #columns> {
  %0 = "ttnn.matmul"(%x, %w) {transpose_a = false, transpose_b = true, matmul_program_config = {MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig = {in0_block_w = 1, per_core_m = 1, per_core_n = 1}}} : (tensor<32x64xbf16, #columns>, tensor<64x64xbf16, #banks>) -> tensor<32x64xbf16, #columns>
  return %0 : tensor<32x64xbf16, #columns>
}

// -----

// Refused: such a weight beside the configuration of another kernel.
// CHECK: ttnn.matmul, and ttnn {{.*}} does not take operands and a result that are WidthSharded
#columns = #ttnn.layout<"BFloat16", "Tile", "L1", "WidthSharded", array<i64: 1, 2>>
#banks = #ttnn.layout<"BFloat16", "Tile", "DRAM", "WidthSharded", array<i64: 1, 2>>
func.func @main(%x: tensor<32x64xbf16, #columns>, %w: tensor<64x64xbf16, #banks>) -> tensor<32x64xbf16, #columns> {
  %0 = "ttnn.matmul"(%x, %w) {transpose_a = false, transpose_b = false, matmul_program_config = {MatmulMultiCoreReuseMultiCast1DProgramConfig = {in0_block_w = 1, per_core_m = 1, per_core_n = 1}}} : (tensor<32x64xbf16, #columns>, tensor<64x64xbf16, #banks>) -> tensor<32x64xbf16, #columns>
  return %0 : tensor<32x64xbf16, #columns>
}
