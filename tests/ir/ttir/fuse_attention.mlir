// RUN: %opt --step fuse %s | %check

// softmax(query @ key^T * scale + mask) @ value
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %m: tensor<2x1x6x6xf32>) -> tensor<2x4x6x8xf32> {
  // CHECK-NEXT: "ttir.scaled_dot_product_attention"(%arg0, %arg1, %arg2, %arg3) {is_causal = false, {{.*}}scale = 2.500000e-01
  // CHECK-NEXT: return
  %s = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.25 : f64} : () -> tensor<1xf32>
  %t = "ttir.permute"(%k) {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x4x6x8xf32>) -> tensor<2x4x8x6xf32>
  %0 = "ttir.matmul"(%q, %t) {transpose_a = false, transpose_b = false} : (tensor<2x4x6x8xf32>, tensor<2x4x8x6xf32>) -> tensor<2x4x6x6xf32>
  %1 = "ttir.multiply"(%0, %s) : (tensor<2x4x6x6xf32>, tensor<1xf32>) -> tensor<2x4x6x6xf32>
  %2 = "ttir.add"(%1, %m) : (tensor<2x4x6x6xf32>, tensor<2x1x6x6xf32>) -> tensor<2x4x6x6xf32>
  %3 = "ttir.softmax"(%2) {dimension = 3 : i64, numeric_stable = true} : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = "ttir.matmul"(%3, %v) {transpose_a = false, transpose_b = false} : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %4 : tensor<2x4x6x8xf32>
}

// -----

// A softmax over the queries is no attention.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %m: tensor<2x1x6x6xf32>) -> tensor<2x4x6x8xf32> {
  // CHECK-NOT: scaled_dot_product_attention
  %s = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.25 : f64} : () -> tensor<1xf32>
  %t = "ttir.permute"(%k) {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x4x6x8xf32>) -> tensor<2x4x8x6xf32>
  %0 = "ttir.matmul"(%q, %t) {transpose_a = false, transpose_b = false} : (tensor<2x4x6x8xf32>, tensor<2x4x8x6xf32>) -> tensor<2x4x6x6xf32>
  %1 = "ttir.multiply"(%0, %s) : (tensor<2x4x6x6xf32>, tensor<1xf32>) -> tensor<2x4x6x6xf32>
  %2 = "ttir.add"(%1, %m) : (tensor<2x4x6x6xf32>, tensor<2x1x6x6xf32>) -> tensor<2x4x6x6xf32>
  %3 = "ttir.softmax"(%2) {dimension = 2 : i64, numeric_stable = true} : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = "ttir.matmul"(%3, %v) {transpose_a = false, transpose_b = false} : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %4 : tensor<2x4x6x8xf32>
}

// -----

// A mask that is broadcast over the keys is not fused.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %m: tensor<2x1x6x1xf32>) -> tensor<2x4x6x8xf32> {
  // CHECK-NOT: scaled_dot_product_attention
  %s = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.25 : f64} : () -> tensor<1xf32>
  %t = "ttir.permute"(%k) {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x4x6x8xf32>) -> tensor<2x4x8x6xf32>
  %0 = "ttir.matmul"(%q, %t) {transpose_a = false, transpose_b = false} : (tensor<2x4x6x8xf32>, tensor<2x4x8x6xf32>) -> tensor<2x4x6x6xf32>
  %1 = "ttir.multiply"(%0, %s) : (tensor<2x4x6x6xf32>, tensor<1xf32>) -> tensor<2x4x6x6xf32>
  %2 = "ttir.add"(%1, %m) : (tensor<2x4x6x6xf32>, tensor<2x1x6x1xf32>) -> tensor<2x4x6x6xf32>
  %3 = "ttir.softmax"(%2) {dimension = 3 : i64, numeric_stable = true} : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = "ttir.matmul"(%3, %v) {transpose_a = false, transpose_b = false} : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %4 : tensor<2x4x6x8xf32>
}

// -----

// One query for all batches is not fused.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %m: tensor<2x1x6x6xf32>) -> tensor<2x4x6x8xf32> {
  // CHECK-NOT: scaled_dot_product_attention
  %s = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.25 : f64} : () -> tensor<1xf32>
  %t = "ttir.permute"(%k) {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x4x6x8xf32>) -> tensor<2x4x8x6xf32>
  %0 = "ttir.matmul"(%q, %t) {transpose_a = false, transpose_b = false} : (tensor<1x4x6x8xf32>, tensor<2x4x8x6xf32>) -> tensor<2x4x6x6xf32>
  %1 = "ttir.multiply"(%0, %s) : (tensor<2x4x6x6xf32>, tensor<1xf32>) -> tensor<2x4x6x6xf32>
  %2 = "ttir.add"(%1, %m) : (tensor<2x4x6x6xf32>, tensor<2x1x6x6xf32>) -> tensor<2x4x6x6xf32>
  %3 = "ttir.softmax"(%2) {dimension = 3 : i64, numeric_stable = true} : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = "ttir.matmul"(%3, %v) {transpose_a = false, transpose_b = false} : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %4 : tensor<2x4x6x8xf32>
}

// -----

// Another op between the scores and the softmax prevents the fusion.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>, %m: tensor<2x1x6x6xf32>) -> tensor<2x4x6x8xf32> {
  // CHECK-NOT: scaled_dot_product_attention
  %s = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.25 : f64} : () -> tensor<1xf32>
  %t = "ttir.permute"(%k) {permutation = array<i64: 0, 1, 3, 2>} : (tensor<2x4x6x8xf32>) -> tensor<2x4x8x6xf32>
  %0 = "ttir.matmul"(%q, %t) {transpose_a = false, transpose_b = false} : (tensor<2x4x6x8xf32>, tensor<2x4x8x6xf32>) -> tensor<2x4x6x6xf32>
  %1 = "ttir.multiply"(%0, %s) : (tensor<2x4x6x6xf32>, tensor<1xf32>) -> tensor<2x4x6x6xf32>
  %2 = "ttir.neg"(%1) : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %3 = "ttir.softmax"(%2) {dimension = 3 : i64, numeric_stable = true} : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = "ttir.matmul"(%3, %v) {transpose_a = false, transpose_b = false} : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %4 : tensor<2x4x6x8xf32>
}

// -----

// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4x6x8xf32>) -> tensor<2x6x32xf32> {
  // CHECK-NEXT: "ttir.concatenate_heads"(%arg0)
  %0 = "ttir.permute"(%x) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x6x8xf32>) -> tensor<2x6x4x8xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 2, 6, 32>} : (tensor<2x6x4x8xf32>) -> tensor<2x6x32xf32>
  return %1 : tensor<2x6x32xf32>
}

// -----

// Transposed values are not fused.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x8x6xf32>) -> tensor<2x4x6x8xf32> {
  // CHECK-NOT: scaled_dot_product_attention
  %0 = "ttir.matmul"(%q, %k) {transpose_a = false, transpose_b = true} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  %1 = "ttir.softmax"(%0) {dimension = 3 : i64, numeric_stable = true} : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = "ttir.matmul"(%1, %v) {transpose_a = false, transpose_b = true} : (tensor<2x4x6x6xf32>, tensor<2x4x8x6xf32>) -> tensor<2x4x6x8xf32>
  return %2 : tensor<2x4x6x8xf32>
}

// -----

// The query is divided by one number, and the scores are multiplied by another; both go into the scale.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  // CHECK: "ttir.scaled_dot_product_attention"(%arg0, %arg1, %arg2) {is_causal = false, {{.*}}scale = 7.500000e-01
  %four = "ttir.full"() {shape = array<i64: 1>, fill_value = 4.0 : f64} : () -> tensor<1xf32>
  %three = "ttir.full"() {shape = array<i64: 1>, fill_value = 3.0 : f64} : () -> tensor<1xf32>
  %0 = "ttir.divide"(%q, %four) : (tensor<2x4x6x8xf32>, tensor<1xf32>) -> tensor<2x4x6x8xf32>
  %1 = "ttir.matmul"(%0, %k) {transpose_a = false, transpose_b = true} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  %2 = "ttir.multiply"(%1, %three) : (tensor<2x4x6x6xf32>, tensor<1xf32>) -> tensor<2x4x6x6xf32>
  %3 = "ttir.softmax"(%2) {dimension = 3 : i64, numeric_stable = true} : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = "ttir.matmul"(%3, %v) {transpose_a = false, transpose_b = false} : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %4 : tensor<2x4x6x8xf32>
}

// -----

// A transposed query, and scores with keys that are not transposed, are not fused.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x4x6x6xf32>, %k: tensor<2x4x6x6xf32>) -> (tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) {
  // CHECK-NOT: scaled_dot_product_attention
  %0 = "ttir.matmul"(%q, %k) {transpose_a = true, transpose_b = true} : (tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %1 = "ttir.softmax"(%0) {dimension = 3 : i64, numeric_stable = true} : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = "ttir.matmul"(%1, %k) {transpose_a = false, transpose_b = false} : (tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %3 = "ttir.matmul"(%q, %k) {transpose_a = false, transpose_b = false} : (tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %4 = "ttir.softmax"(%3) {dimension = 3 : i64, numeric_stable = true} : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %5 = "ttir.matmul"(%4, %k) {transpose_a = false, transpose_b = false} : (tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  return %2, %5 : tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>
}

// -----

// If each head of keys and values was repeated three times in a row, they are used without the repetition.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x6x5x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>) -> tensor<2x6x5x8xf32> {
  // CHECK-NEXT: "ttir.scaled_dot_product_attention"(%arg0, %arg1, %arg2) {
  // CHECK-NEXT: return
  %k0 = "ttir.reshape"(%k) {shape = array<i64: 2, 2, 1, 5, 8>} : (tensor<2x2x5x8xf32>) -> tensor<2x2x1x5x8xf32>
  %k1 = "ttir.broadcast"(%k0) {broadcast_dimensions = array<i64: 1, 1, 3, 1, 1>} : (tensor<2x2x1x5x8xf32>) -> tensor<2x2x3x5x8xf32>
  %k2 = "ttir.reshape"(%k1) {shape = array<i64: 2, 6, 5, 8>} : (tensor<2x2x3x5x8xf32>) -> tensor<2x6x5x8xf32>
  %v0 = "ttir.reshape"(%v) {shape = array<i64: 2, 2, 1, 5, 8>} : (tensor<2x2x5x8xf32>) -> tensor<2x2x1x5x8xf32>
  %v1 = "ttir.broadcast"(%v0) {broadcast_dimensions = array<i64: 1, 1, 3, 1, 1>} : (tensor<2x2x1x5x8xf32>) -> tensor<2x2x3x5x8xf32>
  %v2 = "ttir.reshape"(%v1) {shape = array<i64: 2, 6, 5, 8>} : (tensor<2x2x3x5x8xf32>) -> tensor<2x6x5x8xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k2, %v2) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>) -> tensor<2x6x5x8xf32>
  return %0 : tensor<2x6x5x8xf32>
}

// -----

// The same with other shapes in between: heads and batch are one dimension.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x6x5x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>) -> tensor<2x6x5x8xf32> {
  // CHECK-NEXT: "ttir.scaled_dot_product_attention"(%arg0, %arg1, %arg2) {
  // CHECK-NEXT: return
  %k0 = "ttir.reshape"(%k) {shape = array<i64: 4, 1, 40>} : (tensor<2x2x5x8xf32>) -> tensor<4x1x40xf32>
  %k1 = "ttir.broadcast"(%k0) {broadcast_dimensions = array<i64: 1, 3, 1>} : (tensor<4x1x40xf32>) -> tensor<4x3x40xf32>
  %k2 = "ttir.reshape"(%k1) {shape = array<i64: 2, 6, 5, 8>} : (tensor<4x3x40xf32>) -> tensor<2x6x5x8xf32>
  %v0 = "ttir.reshape"(%v) {shape = array<i64: 4, 1, 40>} : (tensor<2x2x5x8xf32>) -> tensor<4x1x40xf32>
  %v1 = "ttir.broadcast"(%v0) {broadcast_dimensions = array<i64: 1, 3, 1>} : (tensor<4x1x40xf32>) -> tensor<4x3x40xf32>
  %v2 = "ttir.reshape"(%v1) {shape = array<i64: 2, 6, 5, 8>} : (tensor<4x3x40xf32>) -> tensor<2x6x5x8xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k2, %v2) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>) -> tensor<2x6x5x8xf32>
  return %0 : tensor<2x6x5x8xf32>
}

// -----

// All query heads share one head of keys and values.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x6x5x8xf32>, %k: tensor<2x1x5x8xf32>, %v: tensor<2x1x5x8xf32>) -> tensor<2x6x5x8xf32> {
  // CHECK-NEXT: "ttir.scaled_dot_product_attention"(%arg0, %arg1, %arg2) {
  // CHECK-NEXT: return
  %k2 = "ttir.broadcast"(%k) {broadcast_dimensions = array<i64: 1, 6, 1, 1>} : (tensor<2x1x5x8xf32>) -> tensor<2x6x5x8xf32>
  %v2 = "ttir.broadcast"(%v) {broadcast_dimensions = array<i64: 1, 6, 1, 1>} : (tensor<2x1x5x8xf32>) -> tensor<2x6x5x8xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k2, %v2) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>) -> tensor<2x6x5x8xf32>
  return %0 : tensor<2x6x5x8xf32>
}

// -----

// The whole list of heads is repeated. This gives another order of heads, so the repetition stays.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x6x5x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x8xf32>) -> tensor<2x6x5x8xf32> {
  // CHECK: ttir.broadcast
  // CHECK: ttir.broadcast
  // CHECK: "ttir.scaled_dot_product_attention"(%arg0, {{%[0-9]+}}, {{%[0-9]+}})
  %k0 = "ttir.reshape"(%k) {shape = array<i64: 2, 1, 2, 5, 8>} : (tensor<2x2x5x8xf32>) -> tensor<2x1x2x5x8xf32>
  %k1 = "ttir.broadcast"(%k0) {broadcast_dimensions = array<i64: 1, 3, 1, 1, 1>} : (tensor<2x1x2x5x8xf32>) -> tensor<2x3x2x5x8xf32>
  %k2 = "ttir.reshape"(%k1) {shape = array<i64: 2, 6, 5, 8>} : (tensor<2x3x2x5x8xf32>) -> tensor<2x6x5x8xf32>
  %v0 = "ttir.reshape"(%v) {shape = array<i64: 2, 1, 2, 5, 8>} : (tensor<2x2x5x8xf32>) -> tensor<2x1x2x5x8xf32>
  %v1 = "ttir.broadcast"(%v0) {broadcast_dimensions = array<i64: 1, 3, 1, 1, 1>} : (tensor<2x1x2x5x8xf32>) -> tensor<2x3x2x5x8xf32>
  %v2 = "ttir.reshape"(%v1) {shape = array<i64: 2, 6, 5, 8>} : (tensor<2x3x2x5x8xf32>) -> tensor<2x6x5x8xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k2, %v2) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>) -> tensor<2x6x5x8xf32>
  return %0 : tensor<2x6x5x8xf32>
}

// -----

// Keys are repeated, and values are not: both must have the same number of heads.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x6x5x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x6x5x8xf32>) -> tensor<2x6x5x8xf32> {
  // CHECK: ttir.broadcast
  // CHECK: "ttir.scaled_dot_product_attention"(%arg0, {{%[0-9]+}}, %arg2)
  %k0 = "ttir.reshape"(%k) {shape = array<i64: 2, 2, 1, 5, 8>} : (tensor<2x2x5x8xf32>) -> tensor<2x2x1x5x8xf32>
  %k1 = "ttir.broadcast"(%k0) {broadcast_dimensions = array<i64: 1, 1, 3, 1, 1>} : (tensor<2x2x1x5x8xf32>) -> tensor<2x2x3x5x8xf32>
  %k2 = "ttir.reshape"(%k1) {shape = array<i64: 2, 6, 5, 8>} : (tensor<2x2x3x5x8xf32>) -> tensor<2x6x5x8xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k2, %v) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>) -> tensor<2x6x5x8xf32>
  return %0 : tensor<2x6x5x8xf32>
}

// -----

// Keys are repeated three times, values twice.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x6x5x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x3x5x8xf32>) -> tensor<2x6x5x8xf32> {
  // CHECK: ttir.broadcast
  // CHECK: ttir.broadcast
  // CHECK: "ttir.scaled_dot_product_attention"(%arg0, {{%[0-9]+}}, {{%[0-9]+}})
  %k0 = "ttir.reshape"(%k) {shape = array<i64: 2, 2, 1, 5, 8>} : (tensor<2x2x5x8xf32>) -> tensor<2x2x1x5x8xf32>
  %k1 = "ttir.broadcast"(%k0) {broadcast_dimensions = array<i64: 1, 1, 3, 1, 1>} : (tensor<2x2x1x5x8xf32>) -> tensor<2x2x3x5x8xf32>
  %k2 = "ttir.reshape"(%k1) {shape = array<i64: 2, 6, 5, 8>} : (tensor<2x2x3x5x8xf32>) -> tensor<2x6x5x8xf32>
  %v0 = "ttir.reshape"(%v) {shape = array<i64: 2, 3, 1, 5, 8>} : (tensor<2x3x5x8xf32>) -> tensor<2x3x1x5x8xf32>
  %v1 = "ttir.broadcast"(%v0) {broadcast_dimensions = array<i64: 1, 1, 2, 1, 1>} : (tensor<2x3x1x5x8xf32>) -> tensor<2x3x2x5x8xf32>
  %v2 = "ttir.reshape"(%v1) {shape = array<i64: 2, 6, 5, 8>} : (tensor<2x3x2x5x8xf32>) -> tensor<2x6x5x8xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k2, %v2) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>) -> tensor<2x6x5x8xf32>
  return %0 : tensor<2x6x5x8xf32>
}

// -----

// Rows are repeated, and not heads.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x6x5x8xf32>, %k: tensor<2x6x1x8xf32>, %v: tensor<2x6x1x8xf32>) -> tensor<2x6x5x8xf32> {
  // CHECK: ttir.broadcast
  // CHECK: ttir.broadcast
  // CHECK: "ttir.scaled_dot_product_attention"(%arg0, {{%[0-9]+}}, {{%[0-9]+}})
  %k2 = "ttir.broadcast"(%k) {broadcast_dimensions = array<i64: 1, 1, 5, 1>} : (tensor<2x6x1x8xf32>) -> tensor<2x6x5x8xf32>
  %v2 = "ttir.broadcast"(%v) {broadcast_dimensions = array<i64: 1, 1, 5, 1>} : (tensor<2x6x1x8xf32>) -> tensor<2x6x5x8xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k2, %v2) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>) -> tensor<2x6x5x8xf32>
  return %0 : tensor<2x6x5x8xf32>
}

// -----

// Batches are repeated, and not heads.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<2x6x5x8xf32>, %k: tensor<1x6x5x8xf32>, %v: tensor<1x6x5x8xf32>) -> tensor<2x6x5x8xf32> {
  // CHECK: ttir.broadcast
  // CHECK: ttir.broadcast
  // CHECK: "ttir.scaled_dot_product_attention"(%arg0, {{%[0-9]+}}, {{%[0-9]+}})
  %k2 = "ttir.broadcast"(%k) {broadcast_dimensions = array<i64: 2, 1, 1, 1>} : (tensor<1x6x5x8xf32>) -> tensor<2x6x5x8xf32>
  %v2 = "ttir.broadcast"(%v) {broadcast_dimensions = array<i64: 2, 1, 1, 1>} : (tensor<1x6x5x8xf32>) -> tensor<2x6x5x8xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k2, %v2) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>, tensor<2x6x5x8xf32>) -> tensor<2x6x5x8xf32>
  return %0 : tensor<2x6x5x8xf32>
}

// -----

// The query was multiplied by 0.25 before its heads were split (OPT). The factor goes into the scale.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>) -> tensor<2x2x6x8xf32> {
  // CHECK-NEXT: [[A:%[0-9]+]] = "ttir.reshape"(%arg0)
  // CHECK-NEXT: [[Q:%[0-9]+]] = "ttir.permute"([[A]])
  // CHECK-NEXT: "ttir.scaled_dot_product_attention"([[Q]], %arg1, %arg2) {is_causal = true, {{.*}}scale = 1.250000e-01 : f32}
  %c = "ttir.full"() {shape = array<i64: 1, 1, 1>, fill_value = 0.25 : f64} : () -> tensor<1x1x1xf32>
  %0 = "ttir.multiply"(%x, %c) : (tensor<2x6x16xf32>, tensor<1x1x1xf32>) -> tensor<2x6x16xf32>
  %q1 = "ttir.reshape"(%0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %q2 = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %1 = "ttir.scaled_dot_product_attention"(%q2, %k, %v) {is_causal = true, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> tensor<2x2x6x8xf32>
  return %1 : tensor<2x2x6x8xf32>
}

// -----

// The factor stays if it has one number per column, if it is a whole tensor, or if something else reads the heads.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x8xf32>, %w: tensor<16xf32>, %y: tensor<2x6x16xf32>) -> (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) {
  // CHECK-COUNT-3: "ttir.multiply"
  // CHECK-NOT: scale = 1.250000e-01
  %c = "ttir.full"() {shape = array<i64: 1, 1, 1>, fill_value = 0.25 : f64} : () -> tensor<1x1x1xf32>
  %0 = "ttir.multiply"(%x, %w) : (tensor<2x6x16xf32>, tensor<16xf32>) -> tensor<2x6x16xf32>
  %q1 = "ttir.reshape"(%0) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %q2 = "ttir.permute"(%q1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %1 = "ttir.scaled_dot_product_attention"(%q2, %k, %v) {is_causal = true, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> tensor<2x2x6x8xf32>
  %2 = "ttir.multiply"(%x, %y) : (tensor<2x6x16xf32>, tensor<2x6x16xf32>) -> tensor<2x6x16xf32>
  %p1 = "ttir.reshape"(%2) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %p2 = "ttir.permute"(%p1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %3 = "ttir.scaled_dot_product_attention"(%p2, %k, %v) {is_causal = true, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> tensor<2x2x6x8xf32>
  %4 = "ttir.multiply"(%y, %c) : (tensor<2x6x16xf32>, tensor<1x1x1xf32>) -> tensor<2x6x16xf32>
  %r1 = "ttir.reshape"(%4) {shape = array<i64: 2, 6, 2, 8>} : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %r2 = "ttir.permute"(%r1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %5 = "ttir.scaled_dot_product_attention"(%r2, %k, %v) {is_causal = true, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> tensor<2x2x6x8xf32>
  return %1, %3, %5, %r2 : tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>
}
