// RUN: %opt --expect-error %s | %check

// Before and after every step, the verifier refuses types that differ from the types that a declaration infers.

func.func @main(%x: tensor<2x3xf32>) -> tensor<5xf32> {
  // CHECK: error: ttir.reshape: [2, 3] cannot be reshaped to [5]
  %0 = "ttir.reshape"(%x) {shape = array<i64: 5>} : (tensor<2x3xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // CHECK: error: ttir.permute: [1, 1] is no permutation of rank 2
  %0 = "ttir.permute"(%x) {permutation = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> tensor<2x3xf32> {
  // CHECK: error: ttir.add: shapes [2, 3], [2, 4] do not broadcast
  %0 = "ttir.add"(%x, %y) : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: error: ttir.eq: got result tensor<2x3xf32>, expected tensor<2x3xbf16>
  %0 = "ttir.eq"(%x, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x3xf32>) -> tensor<2x6xf32> {
  // CHECK: error: ttir.concat: [3, 3] and [2, 3] differ in more than dimension 1
  %0 = "ttir.concat"(%x, %y) {dim = 1 : i64, operandSegmentSizes = array<i32: 1,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0>} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>) -> tensor<2x2xf32> {
  // CHECK: error: ttir.slice_static: slice 2 to 4 is not within size 3
  %0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 2>, ends = array<i64: 2, 4>, step = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  // CHECK: 'ttir.sum' op attribute "dim_arg" is expected but not provided
  %0 = "ttir.sum"(%x) {keep_dim = false} : (tensor<2x3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>) -> tensor<3xf32> {
  // CHECK: error: ttir.sum: dimension 2 is out of range for rank 2
  %0 = "ttir.sum"(%x) {dim_arg = array<i64: 2>, keep_dim = false} : (tensor<2x3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @main(%x: tensor<2x4xf32>, %w: tensor<5x4xf32>) -> tensor<2x5xf32> {
  // CHECK: error: ttir.matmul: inner dimensions 4 and 5 differ
  %0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<5x4xf32>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// -----

func.func @main(%x: tensor<4x4xf32>) -> tensor<4x5xf32> {
  // CHECK: error: ttir.softmax: got result tensor<4x5xf32>, expected tensor<4x4xf32>
  %0 = "ttir.softmax"(%x) {dimension = 1 : i64, numeric_stable = true} : (tensor<4x4xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// -----

func.func @main(%x: tensor<1x1x16x3xf32>, %w: tensor<5x3x3x3xf32> {ttcore.argument_type = "parameter"}) -> tensor<1x1x4x5xf32> {
  // CHECK: error: ttir.conv2d: got result tensor<1x1x4x5xf32>, expected tensor<1x1x16x5xf32>
  %0 = "ttir.conv2d"(%x, %w) {batch_size = 1 : i64, input_height = 4 : i64, input_width = 4 : i64, in_channels = 3 : i64, out_channels = 5 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x16x3xf32>, tensor<5x3x3x3xf32>) -> tensor<1x1x4x5xf32>
  return %0 : tensor<1x1x4x5xf32>
}

// -----

func.func @main(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32> {
  // CHECK: error: ttir.scaled_dot_product_attention: got result tensor<2x4x6x6xf32>, expected tensor<2x4x6x8xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %k) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  return %0 : tensor<2x4x6x6xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xi32> {
  // CHECK: error: ttir.typecast: got result tensor<4xi32>, expected tensor<4xbf16>
  %0 = "ttir.typecast"(%x) {dtype = bf16} : (tensor<4xf32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

func.func @main(%x: tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>>) -> tensor<2x4xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>> {
  // CHECK: error: ttnn.relu: got result tensor<2x4xf32>, expected tensor<2x3xf32>
  %0 = "ttnn.relu"(%x) : (tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>>) -> tensor<2x4xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>>
  return %0 : tensor<2x4xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>>
}

// -----

func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<2x4xi32>) {
  // CHECK: error: ttir.topk: the first 4 of 3 elements do not exist
  %0, %1 = "ttir.topk"(%x) {k = 4 : i64, dim = 1 : i64, largest = true, sorted = true} : (tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<2x4xi32>)
  return %0, %1 : tensor<2x4xf32>, tensor<2x4xi32>
}

// -----

func.func @main(%x: tensor<3x4xf32>) -> tensor<1x4xf32> {
  // CHECK: error: ttir.mesh_shard: [3, 4] has no [2, 1] equal parts
  %0 = "ttir.mesh_shard"(%x) {shard_type = "devices", shard_direction = "full_to_shard", shard_dims = array<i64: -1, 0>, shard_shape = array<i64: 2, 1>} : (tensor<3x4xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}

// -----

func.func @main(%x: tensor<3x4xf32>) -> tensor<1x8xf32> {
  // CHECK: error: ttir.all_to_all: dimension 0 of [3, 4] has no 2 equal parts
  %0 = "ttir.all_to_all"(%x) {split_dim = 0 : i64, concat_dim = 1 : i64, split_count = 2 : i64, replica_groups = [array<i64: 0, 1>]} : (tensor<3x4xf32>) -> tensor<1x8xf32>
  return %0 : tensor<1x8xf32>
}
