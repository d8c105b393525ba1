// RUN: %opt --step legality --expect-error %s | %check

// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.concatenate_heads, and ttnn {{.*}} does not take heads of 8
#tiles = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<1x2x4x32xf32, #tiles>, %y: tensor<1x2x4x8xf32, #tiles>) -> tensor<1x4x16xf32, #tiles> {
  %0 = "ttnn.concatenate_heads"(%x) : (tensor<1x2x4x32xf32, #tiles>) -> tensor<1x4x64xf32, #tiles>
  %1 = "ttnn.concatenate_heads"(%y) : (tensor<1x2x4x8xf32, #tiles>) -> tensor<1x4x16xf32, #tiles> loc("illegal")
  return %1 : tensor<1x4x16xf32, #tiles>
}

// -----

// CHECK: ttnn.split_query_key_value_and_split_heads, and ttnn {{.*}} does not take heads of 8
#tiles = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<1x4x96xf32, #tiles>) -> tensor<1x4x4x8xf32, #tiles> {
  %q, %k, %v = "ttnn.split_query_key_value_and_split_heads"(%x) {num_heads = 4 : i64, transpose_key = false, operandSegmentSizes = array<i32: 1, 0>} : (tensor<1x4x96xf32, #tiles>) -> (tensor<1x4x4x8xf32, #tiles>, tensor<1x4x4x8xf32, #tiles>, tensor<1x4x4x8xf32, #tiles>)
  return %q : tensor<1x4x4x8xf32, #tiles>
}

// -----

// CHECK: ttnn.scaled_dot_product_attention, and ttnn {{.*}} does not take an operand of Float32 in Tile
#tiles = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%q: tensor<1x2x4x32xf32, #tiles>) -> tensor<1x2x4x32xf32, #tiles> {
  %0 = "ttnn.scaled_dot_product_attention"(%q, %q, %q) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x2x4x32xf32, #tiles>, tensor<1x2x4x32xf32, #tiles>, tensor<1x2x4x32xf32, #tiles>) -> tensor<1x2x4x32xf32, #tiles>
  return %0 : tensor<1x2x4x32xf32, #tiles>
}

// -----

// CHECK: ttnn.scaled_dot_product_attention, and ttnn {{.*}} does not take heads of 8 and 8
#tiles = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%q: tensor<1x2x4x8xbf16, #tiles>) -> tensor<1x2x4x8xbf16, #tiles> {
  %0 = "ttnn.scaled_dot_product_attention"(%q, %q, %q) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x2x4x8xbf16, #tiles>, tensor<1x2x4x8xbf16, #tiles>, tensor<1x2x4x8xbf16, #tiles>) -> tensor<1x2x4x8xbf16, #tiles>
  return %0 : tensor<1x2x4x8xbf16, #tiles>
}

// -----

// CHECK: ttnn.scaled_dot_product_attention, and ttnn {{.*}} does not take heads of 32 and 64
#tiles = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%q: tensor<1x2x4x32xbf16, #tiles>, %v: tensor<1x2x4x64xbf16, #tiles>) -> tensor<1x2x4x64xbf16, #tiles> {
  %0 = "ttnn.scaled_dot_product_attention"(%q, %q, %v) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x2x4x32xbf16, #tiles>, tensor<1x2x4x32xbf16, #tiles>, tensor<1x2x4x64xbf16, #tiles>) -> tensor<1x2x4x64xbf16, #tiles>
  return %0 : tensor<1x2x4x64xbf16, #tiles>
}

// -----

// Three heads of queries for two heads of keys are refused.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.scaled_dot_product_attention, and ttnn {{.*}} does not take heads [1, 3] of [1, 2]
#tiles = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%q: tensor<1x4x4x32xbf16, #tiles>, %p: tensor<1x3x4x32xbf16, #tiles>, %k: tensor<1x2x4x32xbf16, #tiles>) -> tensor<1x3x4x32xbf16, #tiles> {
  %0 = "ttnn.scaled_dot_product_attention"(%q, %k, %k) {is_causal = true, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x4x4x32xbf16, #tiles>, tensor<1x2x4x32xbf16, #tiles>, tensor<1x2x4x32xbf16, #tiles>) -> tensor<1x4x4x32xbf16, #tiles>
  %1 = "ttnn.scaled_dot_product_attention"(%p, %k, %k) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x3x4x32xbf16, #tiles>, tensor<1x2x4x32xbf16, #tiles>, tensor<1x2x4x32xbf16, #tiles>) -> tensor<1x3x4x32xbf16, #tiles> loc("illegal")
  return %1 : tensor<1x3x4x32xbf16, #tiles>
}

// -----

// CHECK: ttnn.scaled_dot_product_attention, and ttnn {{.*}} does not take a causal mask of other sizes
#tiles = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%q: tensor<1x2x4x32xbf16, #tiles>, %k: tensor<1x2x8x32xbf16, #tiles>) -> tensor<1x2x4x32xbf16, #tiles> {
  %0 = "ttnn.scaled_dot_product_attention"(%q, %k, %k) {is_causal = true, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x2x4x32xbf16, #tiles>, tensor<1x2x8x32xbf16, #tiles>, tensor<1x2x8x32xbf16, #tiles>) -> tensor<1x2x4x32xbf16, #tiles>
  return %0 : tensor<1x2x4x32xbf16, #tiles>
}

// -----

// A mask that is broadcast over the heads is taken. A mask that is broadcast over the rows is refused.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.scaled_dot_product_attention, and ttnn {{.*}} does not take a mask of [1, 2, 1, 8]
#tiles = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%q: tensor<1x2x4x32xbf16, #tiles>, %k: tensor<1x2x8x32xbf16, #tiles>, %m: tensor<1x1x4x8xbf16, #tiles>, %n: tensor<1x2x1x8xbf16, #tiles>) -> tensor<1x2x4x32xbf16, #tiles> {
  %0 = "ttnn.scaled_dot_product_attention"(%q, %k, %k, %m) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<1x2x4x32xbf16, #tiles>, tensor<1x2x8x32xbf16, #tiles>, tensor<1x2x8x32xbf16, #tiles>, tensor<1x1x4x8xbf16, #tiles>) -> tensor<1x2x4x32xbf16, #tiles>
  %1 = "ttnn.scaled_dot_product_attention"(%q, %k, %k, %n) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<1x2x4x32xbf16, #tiles>, tensor<1x2x8x32xbf16, #tiles>, tensor<1x2x8x32xbf16, #tiles>, tensor<1x2x1x8xbf16, #tiles>) -> tensor<1x2x4x32xbf16, #tiles> loc("illegal")
  return %1 : tensor<1x2x4x32xbf16, #tiles>
}

// -----

// CHECK: ttnn.scaled_dot_product_attention, and ttnn {{.*}} does not take a mask of BFloat16 in Tile, L1
#tiles = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#l1 = #ttnn.layout<"BFloat16", "Tile", "L1", "Interleaved", array<i64: 1, 1>>
func.func @main(%q: tensor<1x2x4x32xbf16, #tiles>, %m: tensor<1x1x4x4xbf16, #l1>) -> tensor<1x2x4x32xbf16, #tiles> {
  %0 = "ttnn.scaled_dot_product_attention"(%q, %q, %q, %m) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<1x2x4x32xbf16, #tiles>, tensor<1x2x4x32xbf16, #tiles>, tensor<1x2x4x32xbf16, #tiles>, tensor<1x1x4x4xbf16, #l1>) -> tensor<1x2x4x32xbf16, #tiles>
  return %0 : tensor<1x2x4x32xbf16, #tiles>
}
