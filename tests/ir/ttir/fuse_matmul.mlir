// RUN: %opt --step fuse %s | %check

// Transposes, bias and activation are fused.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xf32>, %w: tensor<5x4xf32>, %b: tensor<5xf32>) -> tensor<2x5xf32> {
  // CHECK-NEXT: "ttir.linear"(%arg0, %arg1, %arg2) {activation = "relu"{{.*}} transpose_a = false, transpose_b = true}
  // CHECK-NEXT: return
  %0 = "ttir.permute"(%w) {permutation = array<i64: 1, 0>} : (tensor<5x4xf32>) -> tensor<4x5xf32>
  %1 = "ttir.matmul"(%x, %0) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  %2 = "ttir.add"(%b, %1) : (tensor<5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
  %3 = "ttir.relu"(%2) : (tensor<2x5xf32>) -> tensor<2x5xf32>
  return %3 : tensor<2x5xf32>
}

// -----

// Transposes of both operands are fused into a product without a bias; a transpose of a batch is none.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x2xf32>, %w: tensor<5x4xf32>, %y: tensor<4x2x3xf32>) -> (tensor<2x5xf32>, tensor<2x4x3xf32>) {
  // CHECK: "ttir.matmul"(%arg0, %arg1) {transpose_a = true, transpose_b = true}
  // CHECK: [[Y:%[0-9]+]] = "ttir.permute"(%arg2)
  // CHECK: "ttir.matmul"([[Y]], %{{[0-9]+}}) {transpose_a = false, transpose_b = false}
  %0 = "ttir.permute"(%x) {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %1 = "ttir.permute"(%w) {permutation = array<i64: 1, 0>} : (tensor<5x4xf32>) -> tensor<4x5xf32>
  %2 = "ttir.matmul"(%0, %1) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  %3 = "ttir.permute"(%y) {permutation = array<i64: 1, 0, 2>} : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
  %4 = "ttir.full"() {shape = array<i64: 3, 3>, fill_value = 2.0 : f64} : () -> tensor<3x3xf32>
  %5 = "ttir.matmul"(%3, %4) {transpose_a = false, transpose_b = false} : (tensor<2x4x3xf32>, tensor<3x3xf32>) -> tensor<2x4x3xf32>
  return %2, %5 : tensor<2x5xf32>, tensor<2x4x3xf32>
}

// -----

// A column or a scalar is not fused as a bias.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x5xf32>, %b: tensor<2x1xf32>, %s: tensor<f32>) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
  // CHECK-NOT: ttir.linear
  %0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  %1 = "ttir.add"(%0, %b) : (tensor<2x5xf32>, tensor<2x1xf32>) -> tensor<2x5xf32>
  %2 = "ttir.matmul"(%1, %1) {transpose_a = true, transpose_b = false} : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<5x5xf32>
  %3 = "ttir.add"(%2, %s) : (tensor<5x5xf32>, tensor<f32>) -> tensor<5x5xf32>
  %4 = "ttir.slice_static"(%3) {begins = array<i64: 0, 0>, ends = array<i64: 2, 5>, step = array<i64: 1, 1>} : (tensor<5x5xf32>) -> tensor<2x5xf32>
  return %1, %4 : tensor<2x5xf32>, tensor<2x5xf32>
}

// -----

// A product that is read a second time is not fused with the bias.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x5xf32>, %b: tensor<5xf32>) -> (tensor<2x5xf32>, tensor<2x5xf32>) {
  // CHECK: "ttir.matmul"
  // CHECK: "ttir.add"
  %0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  %1 = "ttir.add"(%0, %b) : (tensor<2x5xf32>, tensor<5xf32>) -> tensor<2x5xf32>
  return %0, %1 : tensor<2x5xf32>, tensor<2x5xf32>
}

// -----

// Each activation that the library can fuse is fused.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  // CHECK: "ttir.linear"(%arg0, {{.*}} {activation = "gelu"
  // CHECK: "ttir.linear"({{.*}} {activation = "silu"
  // CHECK: "ttir.linear"({{.*}} {activation = "sigmoid"
  // CHECK: [[T:%[0-9]+]] = "ttir.linear"({{.*}} {activation = "tanh"
  // CHECK: "ttir.relu"([[T]])
  %0 = "ttir.linear"(%x, %w, %b) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %1 = "ttir.gelu"(%0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = "ttir.linear"(%1, %w, %b) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %3 = "ttir.silu"(%2) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = "ttir.linear"(%3, %w, %b) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %5 = "ttir.sigmoid"(%4) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %6 = "ttir.linear"(%5, %w, %b) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %7 = "ttir.tanh"(%6) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %8 = "ttir.relu"(%7) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %8 : tensor<2x4xf32>
}

// -----

// A product without a bias takes an activation, too, if no other op reads the product.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  // CHECK-DAG: "ttir.linear"(%arg0, %arg1) {activation = "silu", {{.*}}transpose_a = false, transpose_b = true}
  // CHECK-DAG: [[M:%[0-9]+]] = "ttir.matmul"(%arg0, %arg1)
  // CHECK-DAG: "ttir.relu"([[M]])
  %t = "ttir.permute"(%w) {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = "ttir.matmul"(%x, %t) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = "ttir.silu"(%0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = "ttir.relu"(%2) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1, %2, %3 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// A bias of integers is not fused.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xi32>, %w: tensor<4x5xi32>, %b: tensor<5xi32>) -> tensor<2x5xi32> {
  // CHECK: "ttir.add"
  %0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xi32>, tensor<4x5xi32>) -> tensor<2x5xi32>
  %1 = "ttir.add"(%0, %b) : (tensor<2x5xi32>, tensor<5xi32>) -> tensor<2x5xi32>
  return %1 : tensor<2x5xi32>
}

// -----

// The gelu with tanh is an activation, also where bfloat16 becomes float32 for it.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %y: tensor<2x4xbf16>, %v: tensor<4x4xbf16>) -> (tensor<2x4xf32>, tensor<2x4xbf16>) {
  // CHECK-NEXT: [[A:%[0-9]+]] = "ttir.linear"(%arg0, %arg1) {activation = "gelu_tanh"
  // CHECK-NEXT: [[B:%[0-9]+]] = "ttir.linear"(%arg2, %arg3) {activation = "gelu_tanh"{{.*}} -> tensor<2x4xbf16>
  // CHECK-NEXT: return [[A]], [[B]]
  %0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = "ttir.gelu_tanh"(%0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = "ttir.matmul"(%y, %v) {transpose_a = false, transpose_b = false} : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
  %3 = "ttir.typecast"(%2) {dtype = f32} : (tensor<2x4xbf16>) -> tensor<2x4xf32>
  %4 = "ttir.gelu_tanh"(%3) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %5 = "ttir.typecast"(%4) {dtype = bf16} : (tensor<2x4xf32>) -> tensor<2x4xbf16>
  return %1, %5 : tensor<2x4xf32>, tensor<2x4xbf16>
}

// -----

// No activation: the product of bfloat16 has one, it or the float32 result is read elsewhere, or it is no product.
// CHECK-LABEL: @main(
func.func @main(%y: tensor<4x4xbf16>, %v: tensor<4x4xbf16>) -> (tensor<4x4xbf16>, tensor<4x4xbf16>, tensor<4x4xbf16>, tensor<4x4xbf16>, tensor<4x4xf32>, tensor<4x4xbf16>) {
  // CHECK-NOT: activation = "gelu_tanh"
  %0 = "ttir.linear"(%y, %v) {activation = "relu", transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %1 = "ttir.typecast"(%0) {dtype = f32} : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  %2 = "ttir.gelu_tanh"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = "ttir.typecast"(%2) {dtype = bf16} : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %4 = "ttir.matmul"(%y, %v) {transpose_a = false, transpose_b = true} : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %5 = "ttir.typecast"(%4) {dtype = f32} : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  %6 = "ttir.gelu_tanh"(%5) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %7 = "ttir.typecast"(%6) {dtype = bf16} : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %8 = "ttir.matmul"(%y, %v) {transpose_a = true, transpose_b = true} : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %9 = "ttir.typecast"(%8) {dtype = f32} : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  %10 = "ttir.gelu_tanh"(%9) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %11 = "ttir.typecast"(%10) {dtype = bf16} : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  %12 = "ttir.typecast"(%y) {dtype = f32} : (tensor<4x4xbf16>) -> tensor<4x4xf32>
  %13 = "ttir.gelu_tanh"(%12) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %14 = "ttir.typecast"(%13) {dtype = bf16} : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  return %3, %4, %7, %11, %10, %14 : tensor<4x4xbf16>, tensor<4x4xbf16>, tensor<4x4xbf16>, tensor<4x4xbf16>, tensor<4x4xf32>, tensor<4x4xbf16>
}
