// RUN: env TT_TORCH_OPTIMIZER=1 %opt --step ttir-to-ttnn --step prepare-convolutions --step layouts --step optimize %s | %check
// RUN: env TT_TORCH_OPTIMIZATION_LEVEL=1 %opt --step ttir-to-ttnn --step prepare-convolutions --step layouts --step optimize %s | filecheck %s --check-prefix=ONE
// RUN: %opt --step ttir-to-ttnn --step prepare-convolutions --step layouts --step optimize %s | filecheck %s --check-prefix=OFF
// OFF-NOT: "L1"
// OFF-NOT: matmul_program_config
// ONE-NOT: "L1"

// A value that an op computes or brings into tiles, and that only computing ops read, goes to L1. Inputs and results stay
// in DRAM.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: "ttnn.to_layout"(%arg0) {{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "L1"
  // CHECK-NEXT: "ttnn.exp"({{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "L1"
  // CHECK-NEXT: "ttnn.softmax"({{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "L1"
  // CHECK-NEXT: "ttnn.add"({{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  %0 = "ttir.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.softmax"(%0) {dimension = 1 : i64, numeric_stable = true} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// -----

// Ops that move tiles read L1 and write there.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // CHECK: "ttnn.exp"({{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "L1"
  // CHECK-NEXT: "ttnn.permute"({{.*}} -> tensor<3x2xf32, #ttnn.layout<"Float32", "Tile", "L1"
  // CHECK-NEXT: "ttnn.abs"({{.*}} -> tensor<3x2xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  %0 = "ttir.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.permute"(%0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = "ttir.abs"(%1) : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return %2 : tensor<3x2xf32>
}

// -----

// A value stays in DRAM if no op reads it, or if we do not know how much memory one of its readers takes.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  // CHECK: "ttnn.exp"({{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  // CHECK-NOT: "L1"
  %0 = "ttir.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.cumsum"(%0) {dim = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "ttir.neg"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = "ttir.sin"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1, %2 : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// Heads are split, attend and are joined in L1: all results of an op lie there.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x128x768xbf16>) -> tensor<1x128x256xbf16> {
  // CHECK: "ttnn.split_query_key_value_and_split_heads"({{.*}} -> (tensor<1x4x128x64xbf16, #ttnn.layout<"BFloat16", "Tile", "L1", "Interleaved", array<i64: 1, 1>>>, tensor<1x4x128x64xbf16, #ttnn.layout<"BFloat16", "Tile", "L1", "Interleaved", array<i64: 1, 1>>>, tensor<1x4x128x64xbf16, #ttnn.layout<"BFloat16", "Tile", "L1", "Interleaved", array<i64: 1, 1>>>)
  // CHECK-NEXT: "ttnn.scaled_dot_product_attention"({{.*}} -> tensor<1x4x128x64xbf16, #ttnn.layout<"BFloat16", "Tile", "L1"
  // CHECK-NEXT: "ttnn.concatenate_heads"({{.*}} -> tensor<1x128x256xbf16, #ttnn.layout<"BFloat16", "Tile", "L1"
  // CHECK-NEXT: "ttnn.tanh"({{.*}} -> tensor<1x128x256xbf16, #ttnn.layout<"BFloat16", "Tile", "DRAM"
  %q, %k, %v = "ttir.split_query_key_value_and_split_heads"(%x) {num_heads = 4 : i64, transpose_key = false, operandSegmentSizes = array<i32: 1, 0>} : (tensor<1x128x768xbf16>) -> (tensor<1x4x128x64xbf16>, tensor<1x4x128x64xbf16>, tensor<1x4x128x64xbf16>)
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v) {is_causal = false, scale = 0.125 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x4x128x64xbf16>, tensor<1x4x128x64xbf16>, tensor<1x4x128x64xbf16>) -> tensor<1x4x128x64xbf16>
  %1 = "ttir.concatenate_heads"(%0) : (tensor<1x4x128x64xbf16>) -> tensor<1x128x256xbf16>
  %2 = "ttir.tanh"(%1) : (tensor<1x128x256xbf16>) -> tensor<1x128x256xbf16>
  return %2 : tensor<1x128x256xbf16>
}

// -----

// Two values of 32 MB fit, and three do not. The memory of a value is free after its last reader.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4096x2048xf32>) -> tensor<4096x2048xf32> {
  // CHECK: "ttnn.to_layout"({{.*}}"Tile", "L1", "Interleaved", array<i64: 1, 1>>>{{$}}
  // CHECK-NEXT: "ttnn.exp"({{.*}}"L1", "Interleaved", array<i64: 1, 1>>>{{$}}
  // CHECK-NEXT: "ttnn.sin"({{.*}} -> tensor<4096x2048xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  // CHECK-NEXT: "ttnn.cos"({{.*}} -> tensor<4096x2048xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  // CHECK-NEXT: "ttnn.add"({{.*}} -> tensor<4096x2048xf32, #ttnn.layout<"Float32", "Tile", "L1"
  // CHECK-NEXT: "ttnn.neg"({{.*}} -> tensor<4096x2048xf32, #ttnn.layout<"Float32", "Tile", "L1"
  %0 = "ttir.exp"(%x) : (tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %1 = "ttir.sin"(%x) : (tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %2 = "ttir.cos"(%x) : (tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %3 = "ttir.add"(%0, %1) : (tensor<4096x2048xf32>, tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %4 = "ttir.neg"(%3) : (tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %5 = "ttir.add"(%4, %2) : (tensor<4096x2048xf32>, tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  return %5 : tensor<4096x2048xf32>
}

// -----

// Products of many rows, and what follows them, stay in blocks of 128 x 96 elements on 8 x 8 cores. The configuration of
// a product has its activation.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1024x768xbf16>, %v: tensor<768x3072xbf16> {ttcore.argument_type = "parameter"}, %w: tensor<3072x768xbf16> {ttcore.argument_type = "parameter"}, %b: tensor<3072xbf16> {ttcore.argument_type = "parameter"}, %g: tensor<768xbf16> {ttcore.argument_type = "parameter"}) -> tensor<1024x768xbf16> {
  // CHECK: "ttnn.linear"({{.*}} {matmul_program_config = {MatmulMultiCoreReuseMultiCastProgramConfig = {compute_with_storage_grid_size = {x = 8 : i64, y = 8 : i64}, fuse_batch = true, fused_activation = {op_type = "Gelu", params = array<i64>}, in0_block_w = 8 : i64, out_block_h = 4 : i64, out_block_w = 12 : i64, out_subblock_h = 1 : i64, out_subblock_w = 4 : i64, per_core_m = 4 : i64, per_core_n = 12 : i64, transpose_mcast = false}}
  // CHECK-SAME: -> tensor<1024x3072xbf16, #ttnn.layout<"BFloat16", "Tile", "L1", "BlockSharded", array<i64: 8, 8>>>
  // CHECK: "ttnn.matmul"({{.*}}in0_block_w = 6 : i64{{.*}} -> tensor<1024x768xbf16, #ttnn.layout<"BFloat16", "Tile", "L1", "BlockSharded", array<i64: 8, 8>>>
  // CHECK-NEXT: "ttnn.add"({{.*}}"BlockSharded", array<i64: 8, 8>>>{{$}}
  // CHECK: "ttnn.rms_norm"({{.*}}"BlockSharded", array<i64: 8, 8>>>{{$}}
  // CHECK-NEXT: "ttnn.to_memory_config"({{.*}}"DRAM", "Interleaved", array<i64: 1, 1>>>{{$}}
  // ONE: "ttnn.linear"({{.*}}fused_activation = {op_type = "Gelu"
  %0 = "ttir.linear"(%x, %v, %b) {transpose_a = false, transpose_b = false, activation = "gelu", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<1024x768xbf16>, tensor<768x3072xbf16>, tensor<3072xbf16>) -> tensor<1024x3072xbf16>
  %1 = "ttir.matmul"(%0, %w) {transpose_a = false, transpose_b = false} : (tensor<1024x3072xbf16>, tensor<3072x768xbf16>) -> tensor<1024x768xbf16>
  %2 = "ttir.add"(%1, %x) : (tensor<1024x768xbf16>, tensor<1024x768xbf16>) -> tensor<1024x768xbf16>
  %3 = "ttir.rms_norm"(%2, %g) {epsilon = 1.0e-05 : f32, operandSegmentSizes = array<i32: 1, 1>} : (tensor<1024x768xbf16>, tensor<768xbf16>) -> tensor<1024x768xbf16>
  return %3 : tensor<1024x768xbf16>
}

// -----

// A product of one row of tiles is split by columns. Equal parts are better than more parts, because the next product
// reads them as they lie.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x2048xbf16>, %v: tensor<2048x5632xbf16> {ttcore.argument_type = "parameter"}, %w: tensor<5632x2048xbf16> {ttcore.argument_type = "parameter"}) -> tensor<1x2048xbf16> {
  // CHECK: "ttnn.matmul"({{.*}}per_core_n = 4 : i64{{.*}} -> tensor<1x5632xbf16, #ttnn.layout<"BFloat16", "Tile", "L1", "WidthSharded", array<i64: 1, 44>>>
  // CHECK-NEXT: "ttnn.silu"({{.*}}"WidthSharded", array<i64: 1, 44>>>{{$}}
  // CHECK-NOT: to_memory_config
  // CHECK: "ttnn.matmul"({{.*}}in0_block_w = 4 : i64{{.*}} -> tensor<1x2048xbf16, #ttnn.layout<"BFloat16", "Tile", "DRAM"
  %0 = "ttir.matmul"(%x, %v) {transpose_a = false, transpose_b = false} : (tensor<1x2048xbf16>, tensor<2048x5632xbf16>) -> tensor<1x5632xbf16>
  %1 = "ttir.silu"(%0) : (tensor<1x5632xbf16>) -> tensor<1x5632xbf16>
  %2 = "ttir.matmul"(%1, %w) {transpose_a = false, transpose_b = false} : (tensor<1x5632xbf16>, tensor<5632x2048xbf16>) -> tensor<1x2048xbf16>
  return %2 : tensor<1x2048xbf16>
}

// -----

// Convolutions pass their result on without a move. Their weights are prepared for the parts of the image that the cores
// get, here four rows of tiles on each of 49 cores.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x6272x128xbf16>, %v: tensor<128x128x3x3xbf16> {ttcore.argument_type = "parameter"}, %w: tensor<512x128x1x1xbf16> {ttcore.argument_type = "parameter"}) -> tensor<1x1x6272x512xbf16> {
  // CHECK: [[X:%[0-9]+]] = "ttnn.to_memory_config"({{.*}} -> tensor<1x1x6272x128xbf16, #ttnn.layout<"BFloat16", "Tile", "L1", "HeightSharded", array<i64: 49, 1>>>
  // CHECK-NEXT: [[V:%[0-9]+]] = "ttnn.prepare_conv2d_weights"(%arg1) {{.*}}shard_layout = "HeightSharded"{{.*}}input_memory_config = {buffer_type = "L1", shard_spec = {core_range_set = {core_ranges = [{end_coord = {x = 7 : i64, y = 5 : i64}, start_coord = {x = 0 : i64, y = 0 : i64}}, {end_coord = {x = 0 : i64, y = 6 : i64}, start_coord = {x = 0 : i64, y = 6 : i64}}]}, orientation = "RowMajor", shape = array<i64: 128, 128>}, tensor_memory_layout = "HeightSharded"}
  // CHECK-NEXT: "ttnn.conv2d"([[X]], [[V]]) {{.*}}shard_layout = "HeightSharded"{{.*}} -> tensor<1x1x6272x128xbf16, #ttnn.layout<"BFloat16", "Tile", "L1", "HeightSharded", array<i64: 49, 1>>>
  // CHECK-NEXT: "ttnn.relu"({{.*}}"HeightSharded", array<i64: 49, 1>>>{{$}}
  // CHECK-NEXT: "ttnn.prepare_conv2d_weights"(%arg2)
  // CHECK-NEXT: "ttnn.conv2d"({{.*}} -> tensor<1x1x6272x512xbf16, #ttnn.layout<"BFloat16", "Tile", "L1", "HeightSharded", array<i64: 49, 1>>>
  // CHECK-NEXT: "ttnn.relu"({{.*}}"HeightSharded", array<i64: 49, 1>>>{{$}}
  // CHECK-NEXT: "ttnn.to_memory_config"({{.*}}"DRAM", "Interleaved", array<i64: 1, 1>>>{{$}}
  %y = "ttir.relu"(%x) : (tensor<1x1x6272x128xbf16>) -> tensor<1x1x6272x128xbf16>
  %0 = "ttir.conv2d"(%y, %v) {batch_size = 8 : i64, input_height = 28 : i64, input_width = 28 : i64, in_channels = 128 : i64, out_channels = 128 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x6272x128xbf16>, tensor<128x128x3x3xbf16>) -> tensor<1x1x6272x128xbf16>
  %1 = "ttir.relu"(%0) : (tensor<1x1x6272x128xbf16>) -> tensor<1x1x6272x128xbf16>
  %2 = "ttir.conv2d"(%1, %w) {batch_size = 8 : i64, input_height = 28 : i64, input_width = 28 : i64, in_channels = 128 : i64, out_channels = 512 : i64, kernel_size = array<i64: 1, 1>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x6272x128xbf16>, tensor<512x128x1x1xbf16>) -> tensor<1x1x6272x512xbf16>
  %3 = "ttir.relu"(%2) : (tensor<1x1x6272x512xbf16>) -> tensor<1x1x6272x512xbf16>
  return %3 : tensor<1x1x6272x512xbf16>
}

// -----

// The pixels of a picture with three channels are split over the cores as tiles. Each core then makes rows of its part, which
// have 8 channels in the convolution, and not 32. The weights are prepared for such rows.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x100352x3xbf16>, %v: tensor<64x3x7x7xbf16> {ttcore.argument_type = "parameter"}) -> tensor<1x1x25088x64xbf16> {
  // CHECK: "ttnn.to_memory_config"({{.*}} -> tensor<1x1x100352x3xbf16, #ttnn.layout<"BFloat16", "Tile", "L1", "HeightSharded", array<i64: 64, 1>>>
  // CHECK-NEXT: [[R:%[0-9]+]] = "ttnn.to_layout"({{.*}} -> tensor<1x1x100352x3xbf16, #ttnn.layout<"BFloat16", "RowMajor", "L1", "HeightSharded", array<i64: 64, 1>>>
  // CHECK-NEXT: [[V:%[0-9]+]] = "ttnn.prepare_conv2d_weights"(%arg1) {{.*}}shape = array<i64: 1568, 3>{{.*}}input_tensor_layout = "RowMajor"
  // CHECK-NEXT: "ttnn.conv2d"([[R]], [[V]]) {{.*}} -> tensor<1x1x25088x64xbf16, #ttnn.layout<"BFloat16", "Tile", "L1", "HeightSharded", array<i64: 64, 1>>>
  %y = "ttir.abs"(%x) : (tensor<1x1x100352x3xbf16>) -> tensor<1x1x100352x3xbf16>
  %0 = "ttir.conv2d"(%y, %v) {batch_size = 2 : i64, input_height = 224 : i64, input_width = 224 : i64, in_channels = 3 : i64, out_channels = 64 : i64, kernel_size = array<i64: 7, 7>, stride = array<i64: 2, 2>, padding = array<i64: 3, 3, 3, 3>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x100352x3xbf16>, tensor<64x3x7x7xbf16>) -> tensor<1x1x25088x64xbf16>
  %1 = "ttir.relu"(%0) : (tensor<1x1x25088x64xbf16>) -> tensor<1x1x25088x64xbf16>
  return %1 : tensor<1x1x25088x64xbf16>
}
