// RUN: %opt --step fuse %s | %check

// Query, key and value get one projection.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<16x32xf32> {ttcore.argument_type = "parameter"}, %bq: tensor<32xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x32xf32> {ttcore.argument_type = "parameter"}, %bk: tensor<32xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x32xf32> {ttcore.argument_type = "parameter"}, %bv: tensor<32xf32> {ttcore.argument_type = "parameter"}) -> tensor<2x4x6x8xf32> {
  // CHECK: [[W:%[0-9]+]] = "ttir.concat"(%arg1, %arg3, %arg5) {dim = 1
  // CHECK: [[J:%[0-9]+]] = "ttir.linear"(%arg0, [[W]], {{.*}} -> tensor<2x6x96xf32>
  // CHECK: "ttir.split_query_key_value_and_split_heads"([[J]]) {num_heads = 4
  %q0 = "ttir.linear"(%x, %wq, %bq) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = "ttir.linear"(%x, %wk, %bk) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<2x6x32xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %v0 = "ttir.linear"(%x, %wv, %bv) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<2x6x32xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %0 : tensor<2x4x6x8xf32>
}

// -----

// Values of another head size cannot be split off from one projection.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<16x32xf32> {ttcore.argument_type = "parameter"}, %bq: tensor<32xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x32xf32> {ttcore.argument_type = "parameter"}, %bk: tensor<32xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x64xf32> {ttcore.argument_type = "parameter"}, %bv: tensor<64xf32> {ttcore.argument_type = "parameter"}) -> tensor<2x4x6x16xf32> {
  // CHECK-NOT: split_query_key_value
  %q0 = "ttir.linear"(%x, %wq, %bq) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = "ttir.linear"(%x, %wk, %bk) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<2x6x32xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %v0 = "ttir.linear"(%x, %wv, %bv) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<16x64xf32>, tensor<64xf32>) -> tensor<2x6x64xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 4, 16>} : (tensor<2x6x64xf32>) -> tensor<2x6x4x16xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x16xf32>) -> tensor<2x4x6x16xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x16xf32>) -> tensor<2x4x6x16xf32>
  return %0 : tensor<2x4x6x16xf32>
}

// -----

// Weights that are not parameters are not joined, because this would happen in every call.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<16x32xf32> {ttcore.argument_type = "input"}, %bq: tensor<32xf32> {ttcore.argument_type = "input"}, %wk: tensor<16x32xf32> {ttcore.argument_type = "input"}, %bk: tensor<32xf32> {ttcore.argument_type = "input"}, %wv: tensor<16x32xf32> {ttcore.argument_type = "input"}, %bv: tensor<32xf32> {ttcore.argument_type = "input"}) -> tensor<2x4x6x8xf32> {
  // CHECK-NOT: split_query_key_value
  %q0 = "ttir.linear"(%x, %wq, %bq) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = "ttir.linear"(%x, %wk, %bk) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<2x6x32xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %v0 = "ttir.linear"(%x, %wv, %bv) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<2x6x32xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %0 : tensor<2x4x6x8xf32>
}

// -----

// Heads with other rows than the projection are not fused.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<16x32xf32> {ttcore.argument_type = "parameter"}, %bq: tensor<32xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x32xf32> {ttcore.argument_type = "parameter"}, %bk: tensor<32xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x32xf32> {ttcore.argument_type = "parameter"}, %bv: tensor<32xf32> {ttcore.argument_type = "parameter"}) -> tensor<3x4x4x8xf32> {
  // CHECK-NOT: split_query_key_value
  %q0 = "ttir.linear"(%x, %wq, %bq) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 3, 4, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<3x4x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<3x4x4x8xf32>) -> tensor<3x4x4x8xf32>
  %k0 = "ttir.linear"(%x, %wk, %bk) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<2x6x32xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 3, 4, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<3x4x4x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<3x4x4x8xf32>) -> tensor<3x4x4x8xf32>
  %v0 = "ttir.linear"(%x, %wv, %bv) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<2x6x32xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 3, 4, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<3x4x4x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<3x4x4x8xf32>) -> tensor<3x4x4x8xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<3x4x4x8xf32>, tensor<3x4x4x8xf32>, tensor<3x4x4x8xf32>) -> tensor<3x4x4x8xf32>
  return %0 : tensor<3x4x4x8xf32>
}

// -----

// No bias, and fewer heads of keys and values.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<32x16xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x16xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK: [[W:%[0-9]+]] = "ttir.concat"(%arg1, %arg2, %arg3) {dim = 0
  // CHECK: [[J:%[0-9]+]] = "ttir.matmul"(%arg0, [[W]]) {transpose_a = false, transpose_b = true} : {{.*}} -> tensor<2x6x64xf32>
  // CHECK: [[S:%[0-9]+]]:3 = "ttir.split_query_key_value_and_split_heads"([[J]]) {num_heads = 4 : i64, num_kv_heads = 2 : i64
  // CHECK-NEXT: return [[S]]#0, [[S]]#1, [[S]]#2
  %q0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<32x16xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = "ttir.matmul"(%x, %wk) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.matmul"(%x, %wv) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// The part with another number of heads is the query, at any place in the program.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<32x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x16xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x2x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK: [[W:%[0-9]+]] = "ttir.concat"(%arg2, %arg3, %arg1) {dim = 0
  // CHECK: [[S:%[0-9]+]]:3 = "ttir.split_query_key_value_and_split_heads"({{%[0-9]+}}) {num_heads = 4 : i64, num_kv_heads = 2 : i64
  // CHECK-NEXT: return [[S]]#2, [[S]]#0, [[S]]#1
  %k0 = "ttir.matmul"(%x, %wk) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<32x16xf32>) -> tensor<2x6x32xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %v0 = "ttir.matmul"(%x, %wv) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %q0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x2x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// The query has fewer heads than keys and values.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<32x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<32x16xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x2x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %k0 = "ttir.matmul"(%x, %wk) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<32x16xf32>) -> tensor<2x6x32xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %v0 = "ttir.matmul"(%x, %wv) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<32x16xf32>) -> tensor<2x6x32xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  return %q, %k, %v : tensor<2x2x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>
}

// -----

// Query, key and value have three different numbers of heads.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<32x16xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<8x16xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x1x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<32x16xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = "ttir.matmul"(%x, %wk) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.matmul"(%x, %wv) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<8x16xf32>) -> tensor<2x6x8xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 1, 8>} : (tensor<2x6x8xf32>) -> tensor<2x6x1x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x1x8xf32>) -> tensor<2x1x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x1x6x8xf32>
}

// -----

// The number of query heads is not a multiple of the number of key heads.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<24x16xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x16xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x3x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<24x16xf32>) -> tensor<2x6x24xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 3, 8>} : (tensor<2x6x24xf32>) -> tensor<2x6x3x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x3x8xf32>) -> tensor<2x3x6x8xf32>
  %k0 = "ttir.matmul"(%x, %wk) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.matmul"(%x, %wv) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x3x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// One projection is of another input.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %y: tensor<2x6x16xf32>, %wq: tensor<32x16xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x16xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<32x16xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = "ttir.matmul"(%y, %wk) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.matmul"(%y, %wv) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// One weight is an input.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<32x16xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x16xf32> {ttcore.argument_type = "input"}) -> (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<32x16xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = "ttir.matmul"(%x, %wk) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.matmul"(%x, %wv) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// One weight is computed after the first heads.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<32x16xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x16xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<32x16xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %w = "ttir.add"(%wv, %wv) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %k0 = "ttir.matmul"(%x, %wk) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// One product does not transpose its weight like the others. The concatenation would need another form of the weight.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<32x16xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x16xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<32x16xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = "ttir.matmul"(%x, %wk) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.matmul"(%x, %wv) {transpose_a = false, transpose_b = false} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// The heads of the keys are moved to another place.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<32x16xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x16xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x2x8x6xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<32x16xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = "ttir.matmul"(%x, %wk) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x8x6xf32>
  %v0 = "ttir.matmul"(%x, %wv) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x2x8x6xf32>, tensor<2x2x6x8xf32>
}

// -----

// Something else reads the keys before they are split into heads.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %wq: tensor<32x16xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x16xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x6x16xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<32x16xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = "ttir.matmul"(%x, %wk) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.matmul"(%x, %wv) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k0, %v : tensor<2x4x6x8xf32>, tensor<2x6x16xf32>, tensor<2x2x6x8xf32>
}

// -----

// Slices of one product are split into heads by one op.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x48xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NEXT: [[S:%[0-9]+]]:3 = "ttir.split_query_key_value_and_split_heads"(%arg0) {num_heads = 2 : i64,
  // CHECK-NEXT: return [[S]]#0, [[S]]#1, [[S]]#2
  %q0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0>, ends = array<i64: 2, 6, 16>, step = array<i64: 1, 1, 1>} : (tensor<2x6x48xf32>) -> tensor<2x6x16xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %k0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 16>, ends = array<i64: 2, 6, 32>, step = array<i64: 1, 1, 1>} : (tensor<2x6x48xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 32>, ends = array<i64: 2, 6, 48>, step = array<i64: 1, 1, 1>} : (tensor<2x6x48xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// The first columns are the query. The order in which the program takes the slices does not matter.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x64xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NEXT: [[S:%[0-9]+]]:3 = "ttir.split_query_key_value_and_split_heads"(%arg0) {num_heads = 4 : i64, num_kv_heads = 2
  // CHECK-NEXT: return [[S]]#1, [[S]]#0, [[S]]#2
  %q0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 32>, ends = array<i64: 2, 6, 48>, step = array<i64: 1, 1, 1>} : (tensor<2x6x64xf32>) -> tensor<2x6x16xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 48>, ends = array<i64: 2, 6, 64>, step = array<i64: 1, 1, 1>} : (tensor<2x6x64xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %k0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0>, ends = array<i64: 2, 6, 32>, step = array<i64: 1, 1, 1>} : (tensor<2x6x64xf32>) -> tensor<2x6x32xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  return %q, %k, %v : tensor<2x2x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// The query has the last columns.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x64xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 32>, ends = array<i64: 2, 6, 64>, step = array<i64: 1, 1, 1>} : (tensor<2x6x64xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0>, ends = array<i64: 2, 6, 16>, step = array<i64: 1, 1, 1>} : (tensor<2x6x64xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 16>, ends = array<i64: 2, 6, 32>, step = array<i64: 1, 1, 1>} : (tensor<2x6x64xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// Columns are left over.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x56xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0>, ends = array<i64: 2, 6, 16>, step = array<i64: 1, 1, 1>} : (tensor<2x6x56xf32>) -> tensor<2x6x16xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %k0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 16>, ends = array<i64: 2, 6, 32>, step = array<i64: 1, 1, 1>} : (tensor<2x6x56xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 32>, ends = array<i64: 2, 6, 48>, step = array<i64: 1, 1, 1>} : (tensor<2x6x56xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// Two slices overlap.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x48xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0>, ends = array<i64: 2, 6, 16>, step = array<i64: 1, 1, 1>} : (tensor<2x6x48xf32>) -> tensor<2x6x16xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %k0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 8>, ends = array<i64: 2, 6, 24>, step = array<i64: 1, 1, 1>} : (tensor<2x6x48xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 32>, ends = array<i64: 2, 6, 48>, step = array<i64: 1, 1, 1>} : (tensor<2x6x48xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// Each slice takes every third column.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x48xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0>, ends = array<i64: 2, 6, 46>, step = array<i64: 1, 1, 3>} : (tensor<2x6x48xf32>) -> tensor<2x6x16xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %k0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 1>, ends = array<i64: 2, 6, 47>, step = array<i64: 1, 1, 3>} : (tensor<2x6x48xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 2>, ends = array<i64: 2, 6, 48>, step = array<i64: 1, 1, 3>} : (tensor<2x6x48xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// A norm of the query's heads is computed behind the split.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %g: tensor<8xf32>, %wq: tensor<32x16xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x16xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK: [[S:%[0-9]+]]:3 = "ttir.split_query_key_value_and_split_heads"
  // CHECK-NEXT: [[N:%[0-9]+]] = "ttir.rms_norm"([[S]]#0, %arg1)
  // CHECK-NEXT: return [[N]], [[S]]#1, [[S]]#2
  %q0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<32x16xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q2 = "ttir.rms_norm"(%q1, %g) {epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x6x4x8xf32>, tensor<8xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q2) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = "ttir.matmul"(%x, %wk) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.matmul"(%x, %wv) {transpose_a = false, transpose_b = true} : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// A reshape splits the heads of one position.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x1x16xf32>, %wq: tensor<16x32xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x16xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x1x8xf32>, tensor<2x2x1x8xf32>, tensor<2x2x1x8xf32>) {
  // CHECK: [[W:%[0-9]+]] = "ttir.concat"(%arg1, %arg2, %arg3) {dim = 1
  // CHECK: [[J:%[0-9]+]] = "ttir.matmul"(%arg0, [[W]]) {{.*}} -> tensor<2x1x64xf32>
  // CHECK: "ttir.split_query_key_value_and_split_heads"([[J]]) {num_heads = 4 : i64, num_kv_heads = 2
  %q0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = false} : (tensor<2x1x16xf32>, tensor<16x32xf32>) -> tensor<2x1x32xf32>
  %q = "ttir.reshape"(%q0) {shape = array<i64: 2, 4, 1, 8>} : (tensor<2x1x32xf32>) -> tensor<2x4x1x8xf32>
  %k0 = "ttir.matmul"(%x, %wk) {transpose_a = false, transpose_b = false} : (tensor<2x1x16xf32>, tensor<16x16xf32>) -> tensor<2x1x16xf32>
  %k = "ttir.reshape"(%k0) {shape = array<i64: 2, 2, 1, 8>} : (tensor<2x1x16xf32>) -> tensor<2x2x1x8xf32>
  %v0 = "ttir.matmul"(%x, %wv) {transpose_a = false, transpose_b = false} : (tensor<2x1x16xf32>, tensor<16x16xf32>) -> tensor<2x1x16xf32>
  %v = "ttir.reshape"(%v0) {shape = array<i64: 2, 2, 1, 8>} : (tensor<2x1x16xf32>) -> tensor<2x2x1x8xf32>
  return %q, %k, %v : tensor<2x4x1x8xf32>, tensor<2x2x1x8xf32>, tensor<2x2x1x8xf32>
}

// -----

// A reshape does not split the heads of two positions. A reshape that moves no heads does not split one position.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x2x16xf32>, %y: tensor<2x1x16xf32>, %wq: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wk: tensor<16x16xf32> {ttcore.argument_type = "parameter"}, %wv: tensor<16x16xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x1x8xf32>, tensor<2x4x1x8xf32>, tensor<2x4x1x8xf32>, tensor<2x1x2x8xf32>, tensor<2x1x2x8xf32>, tensor<2x1x2x8xf32>) {
  // CHECK-NOT: ttir.split_query_key_value_and_split_heads
  %a0 = "ttir.matmul"(%x, %wq) {transpose_a = false, transpose_b = false} : (tensor<2x2x16xf32>, tensor<16x16xf32>) -> tensor<2x2x16xf32>
  %a = "ttir.reshape"(%a0) {shape = array<i64: 2, 4, 1, 8>} : (tensor<2x2x16xf32>) -> tensor<2x4x1x8xf32>
  %b0 = "ttir.matmul"(%x, %wk) {transpose_a = false, transpose_b = false} : (tensor<2x2x16xf32>, tensor<16x16xf32>) -> tensor<2x2x16xf32>
  %b = "ttir.reshape"(%b0) {shape = array<i64: 2, 4, 1, 8>} : (tensor<2x2x16xf32>) -> tensor<2x4x1x8xf32>
  %c0 = "ttir.matmul"(%x, %wv) {transpose_a = false, transpose_b = false} : (tensor<2x2x16xf32>, tensor<16x16xf32>) -> tensor<2x2x16xf32>
  %c = "ttir.reshape"(%c0) {shape = array<i64: 2, 4, 1, 8>} : (tensor<2x2x16xf32>) -> tensor<2x4x1x8xf32>
  %d0 = "ttir.matmul"(%y, %wq) {transpose_a = false, transpose_b = false} : (tensor<2x1x16xf32>, tensor<16x16xf32>) -> tensor<2x1x16xf32>
  %d = "ttir.reshape"(%d0) {shape = array<i64: 2, 1, 2, 8>} : (tensor<2x1x16xf32>) -> tensor<2x1x2x8xf32>
  %e0 = "ttir.matmul"(%y, %wk) {transpose_a = false, transpose_b = false} : (tensor<2x1x16xf32>, tensor<16x16xf32>) -> tensor<2x1x16xf32>
  %e = "ttir.reshape"(%e0) {shape = array<i64: 2, 1, 2, 8>} : (tensor<2x1x16xf32>) -> tensor<2x1x2x8xf32>
  %f0 = "ttir.matmul"(%y, %wv) {transpose_a = false, transpose_b = false} : (tensor<2x1x16xf32>, tensor<16x16xf32>) -> tensor<2x1x16xf32>
  %f = "ttir.reshape"(%f0) {shape = array<i64: 2, 1, 2, 8>} : (tensor<2x1x16xf32>) -> tensor<2x1x2x8xf32>
  return %a, %b, %c, %d, %e, %f : tensor<2x4x1x8xf32>, tensor<2x4x1x8xf32>, tensor<2x4x1x8xf32>, tensor<2x1x2x8xf32>, tensor<2x1x2x8xf32>, tensor<2x1x2x8xf32>
}

// -----

// Key and value, as parts of one product, have different numbers of heads.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x56xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x1x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0>, ends = array<i64: 2, 6, 32>, step = array<i64: 1, 1, 1>} : (tensor<2x6x56xf32>) -> tensor<2x6x32xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 4, 8>} : (tensor<2x6x32xf32>) -> tensor<2x6x4x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %k0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 32>, ends = array<i64: 2, 6, 48>, step = array<i64: 1, 1, 1>} : (tensor<2x6x56xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 48>, ends = array<i64: 2, 6, 56>, step = array<i64: 1, 1, 1>} : (tensor<2x6x56xf32>) -> tensor<2x6x8xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 1, 8>} : (tensor<2x6x8xf32>) -> tensor<2x6x1x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x1x8xf32>) -> tensor<2x1x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x1x6x8xf32>
}

// -----

// In the parts of one product, the number of query heads is not a multiple of the number of key heads.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x56xf32>) -> (tensor<2x3x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %q0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0>, ends = array<i64: 2, 6, 24>, step = array<i64: 1, 1, 1>} : (tensor<2x6x56xf32>) -> tensor<2x6x24xf32>
  %q1 = "ttir.reshape"(%q0) {shape = array<i64: 2, 6, 3, 8>} : (tensor<2x6x24xf32>) -> tensor<2x6x3x8xf32>
  %q = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x3x8xf32>) -> tensor<2x3x6x8xf32>
  %k0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 24>, ends = array<i64: 2, 6, 40>, step = array<i64: 1, 1, 1>} : (tensor<2x6x56xf32>) -> tensor<2x6x16xf32>
  %k1 = "ttir.reshape"(%k0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %k = "ttir.permute"(%k1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %v0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 40>, ends = array<i64: 2, 6, 56>, step = array<i64: 1, 1, 1>} : (tensor<2x6x56xf32>) -> tensor<2x6x16xf32>
  %v1 = "ttir.reshape"(%v0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %v = "ttir.permute"(%v1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %q, %k, %v : tensor<2x3x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}

// -----

// Query, key and value of each head are beside each other: the columns of the weights are moved.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %w: tensor<96x16xf32> {ttcore.argument_type = "parameter"}, %b: tensor<96xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) {
  // CHECK: [[A:%[0-9]+]] = "ttir.reshape"(%arg1) {shape = array<i64: 4, 3, 8, 16>}
  // CHECK: [[P:%[0-9]+]] = "ttir.permute"([[A]]) {permutation = array<i64: 1, 0, 2, 3>}
  // CHECK: [[W:%[0-9]+]] = "ttir.reshape"([[P]]) {shape = array<i64: 96, 16>}
  // CHECK: [[C:%[0-9]+]] = "ttir.reshape"(%arg2) {shape = array<i64: 4, 3, 8>}
  // CHECK: [[R:%[0-9]+]] = "ttir.permute"([[C]]) {permutation = array<i64: 1, 0, 2>}
  // CHECK: [[B:%[0-9]+]] = "ttir.reshape"([[R]]) {shape = array<i64: 96>}
  // CHECK: [[J:%[0-9]+]] = "ttir.linear"(%arg0, [[W]], [[B]])
  // CHECK: [[H:%[0-9]+]]:3 = "ttir.split_query_key_value_and_split_heads"([[J]]) {num_heads = 4
  // CHECK: return [[H]]#0, [[H]]#1, [[H]]#2
  %0 = "ttir.linear"(%x, %w, %b) {transpose_a = false, transpose_b = true, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<96x16xf32>, tensor<96xf32>) -> tensor<2x6x96xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 2, 6, 4, 24>} : (tensor<2x6x96xf32>) -> tensor<2x6x4x24xf32>
  %2 = "ttir.permute"(%1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x24xf32>) -> tensor<2x4x6x24xf32>
  %v = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 4, 6, 24>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  %k = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 8>, ends = array<i64: 2, 4, 6, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  %q = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 4, 6, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>
}

// -----

// The product has one dimension for batch and positions.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<12x16xf32>, %w: tensor<96x16xf32> {ttcore.argument_type = "parameter"}, %b: tensor<96xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) {
  // CHECK: [[J:%[0-9]+]] = "ttir.linear"(%arg0
  // CHECK: [[R:%[0-9]+]] = "ttir.reshape"([[J]]) {shape = array<i64: 2, 6, 96>}
  // CHECK: [[H:%[0-9]+]]:3 = "ttir.split_query_key_value_and_split_heads"([[R]]) {num_heads = 4
  // CHECK: return [[H]]#0, [[H]]#1, [[H]]#2
  %0 = "ttir.linear"(%x, %w, %b) {transpose_a = false, transpose_b = true, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<12x16xf32>, tensor<96x16xf32>, tensor<96xf32>) -> tensor<12x96xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 2, 6, 4, 24>} : (tensor<12x96xf32>) -> tensor<2x6x4x24xf32>
  %2 = "ttir.permute"(%1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x24xf32>) -> tensor<2x4x6x24xf32>
  %q = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 4, 6, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  %k = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 8>, ends = array<i64: 2, 4, 6, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  %v = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 4, 6, 24>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>
}

// -----

// Two of the parts overlap.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %w: tensor<96x16xf32> {ttcore.argument_type = "parameter"}, %b: tensor<96xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %0 = "ttir.linear"(%x, %w, %b) {transpose_a = false, transpose_b = true, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<96x16xf32>, tensor<96xf32>) -> tensor<2x6x96xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 2, 6, 4, 24>} : (tensor<2x6x96xf32>) -> tensor<2x6x4x24xf32>
  %2 = "ttir.permute"(%1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x24xf32>) -> tensor<2x4x6x24xf32>
  %v = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 4, 6, 24>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  %k = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 9>, ends = array<i64: 2, 4, 6, 17>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  %q = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 4, 6, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>
}

// -----

// Weights that are an input are not moved, because this would happen in every call.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %w: tensor<96x16xf32>, %b: tensor<96xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %0 = "ttir.linear"(%x, %w, %b) {transpose_a = false, transpose_b = true, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<96x16xf32>, tensor<96xf32>) -> tensor<2x6x96xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 2, 6, 4, 24>} : (tensor<2x6x96xf32>) -> tensor<2x6x4x24xf32>
  %2 = "ttir.permute"(%1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x24xf32>) -> tensor<2x4x6x24xf32>
  %v = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 4, 6, 24>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  %k = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 8>, ends = array<i64: 2, 4, 6, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  %q = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 4, 6, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  return %q, %k, %v : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>
}

// -----

// Something else reads the product.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %w: tensor<96x16xf32> {ttcore.argument_type = "parameter"}, %b: tensor<96xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x6x96xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %0 = "ttir.linear"(%x, %w, %b) {transpose_a = false, transpose_b = true, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<96x16xf32>, tensor<96xf32>) -> tensor<2x6x96xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 2, 6, 4, 24>} : (tensor<2x6x96xf32>) -> tensor<2x6x4x24xf32>
  %2 = "ttir.permute"(%1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x24xf32>) -> tensor<2x4x6x24xf32>
  %v = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 4, 6, 24>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  %k = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 8>, ends = array<i64: 2, 4, 6, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  %q = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 4, 6, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  return %q, %k, %v, %0 : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x6x96xf32>
}

// -----

// Something else reads the heads.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %w: tensor<96x16xf32> {ttcore.argument_type = "parameter"}, %b: tensor<96xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x24xf32>) {
  // CHECK-NOT: split_query_key_value
  // CHECK: return
  %0 = "ttir.linear"(%x, %w, %b) {transpose_a = false, transpose_b = true, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x6x16xf32>, tensor<96x16xf32>, tensor<96xf32>) -> tensor<2x6x96xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 2, 6, 4, 24>} : (tensor<2x6x96xf32>) -> tensor<2x6x4x24xf32>
  %2 = "ttir.permute"(%1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x24xf32>) -> tensor<2x4x6x24xf32>
  %v = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 4, 6, 24>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  %k = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 8>, ends = array<i64: 2, 4, 6, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  %q = "ttir.slice_static"(%2) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 4, 6, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x4x6x24xf32>) -> tensor<2x4x6x8xf32>
  return %q, %k, %v, %2 : tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x24xf32>
}
