// RUN: %opt --step ttir-to-ttnn --step workarounds %s | %check

// float32 attention in steps.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x2x4x32xf32>, %k: tensor<1x2x8x32xf32>, %v: tensor<1x2x8x32xf32>) -> tensor<1x2x4x32xf32> {
  // CHECK: [[Q:%[0-9]+]] = "ttnn.multiply"(%arg0
  // CHECK: [[S:%[0-9]+]] = "ttnn.matmul"([[Q]], %arg1) {{.*}}transpose_b = true
  // CHECK: [[P:%[0-9]+]] = "ttnn.softmax"([[S]])
  // CHECK: "ttnn.matmul"([[P]], %arg2)
  // CHECK-NOT: scaled_dot_product_attention
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x2x4x32xf32>, tensor<1x2x8x32xf32>, tensor<1x2x8x32xf32>) -> tensor<1x2x4x32xf32>
  return %0 : tensor<1x2x4x32xf32>
}

// -----

// What the fused op takes stays as it is.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x2x4x32xbf16>, %k: tensor<1x2x8x32xbf16>, %v: tensor<1x2x8x32xbf16>) -> tensor<1x2x4x32xbf16> {
  // CHECK: "ttnn.scaled_dot_product_attention"(%arg0, %arg1, %arg2)
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v) {is_causal = true, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x2x4x32xbf16>, tensor<1x2x8x32xbf16>, tensor<1x2x8x32xbf16>) -> tensor<1x2x4x32xbf16>
  return %0 : tensor<1x2x4x32xbf16>
}

// -----

// Indices are unsigned and in rows.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>) -> tensor<2xi32> {
  // CHECK: [[I:%[0-9]+]] = "ttnn.argmax"(%arg0) {{.*}} -> tensor<2xui32, {{.*}}"RowMajor"
  // CHECK: "ttnn.typecast"([[I]]) {{.*}} -> tensor<2xi32
  %0 = "ttir.argmax"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<2x3xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----

// Integers are searched along the last dimension only.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xi32>) -> tensor<3xi32> {
  // CHECK: [[T:%[0-9]+]] = "ttnn.permute"(%arg0) {permutation = array<i64: 1, 0>}
  // CHECK: "ttnn.argmax"([[T]]) {dim = 1
  %0 = "ttir.argmax"(%x) {dim_arg = array<i64: 0>, keep_dim = false} : (tensor<2x3xi32>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}

// -----

// Padding in front is done in rows; behind, in tiles.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  // CHECK: "ttnn.pad"(%arg0) {padding = array<i64: 1, 0, 0, 0>{{.*}} -> tensor<3x3xf32, {{.*}}"RowMajor"
  // CHECK: "ttnn.pad"(%arg0) {padding = array<i64: 0, 1, 0, 0>{{.*}} -> tensor<3x3xf32, {{.*}}"Tile"
  %0 = "ttir.pad"(%x) {padding = array<i64: 1, 0, 0, 0>, value = 0.0 : f32} : (tensor<2x3xf32>) -> tensor<3x3xf32>
  %1 = "ttir.pad"(%x) {padding = array<i64: 0, 1, 0, 0>, value = 0.0 : f32} : (tensor<2x3xf32>) -> tensor<3x3xf32>
  return %0, %1 : tensor<3x3xf32>, tensor<3x3xf32>
}

// -----

// Rows of float32 tables are gathered, those of bfloat16 looked up.
// CHECK-LABEL: @main(
func.func @main(%i: tensor<4xi32>, %a: tensor<9x5xf32>, %b: tensor<9x5xbf16>) -> (tensor<4x5xf32>, tensor<4x5xbf16>) {
  // CHECK: "ttnn.repeat"({{.*}}) {repeat_dims = array<i64: 1, 5>}
  // CHECK: "ttnn.gather"(%arg1, {{.*}}) {dim = 0
  // CHECK: "ttnn.embedding"(%arg0, %arg2)
  %0 = "ttir.embedding"(%i, %a) : (tensor<4xi32>, tensor<9x5xf32>) -> tensor<4x5xf32>
  %1 = "ttir.embedding"(%i, %b) : (tensor<4xi32>, tensor<9x5xbf16>) -> tensor<4x5xbf16>
  return %0, %1 : tensor<4x5xf32>, tensor<4x5xbf16>
}

// -----

// Matrices of integers are multiplied element by element.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<2x3xi32>, %b: tensor<3x4xi32>) -> tensor<2x4xi32> {
  // CHECK: "ttnn.multiply"({{.*}}) {{.*}} -> tensor<2x3x4xi32
  // CHECK: "ttnn.sum"({{.*}}) {dim_arg = array<i64: 1>
  %0 = "ttir.matmul"(%a, %b) {transpose_a = false, transpose_b = false} : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}
