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

// Transposes of both operands are fused into a product without a bias. A permutation of the batch is no transpose.
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

// The gelu with tanh is an activation, also if bfloat16 becomes float32 for it.
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

// The gelu stays if there is no product, if it has an activation, or if it or the float32 result has another reader.
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

// -----

// Gate and values of one product, in either order, become two products, and the gate gets its activation.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xf32>, %w: tensor<10x4xf32> {ttcore.argument_type = "parameter"}, %c: tensor<10xf32> {ttcore.argument_type = "parameter"}) -> tensor<2x5xf32> {
  // CHECK-DAG: [[W1:%[0-9]+]] = "ttir.slice_static"(%arg1) {begins = array<i64: 5, 0>, ends = array<i64: 10, 4>
  // CHECK-DAG: [[C1:%[0-9]+]] = "ttir.slice_static"(%arg2) {begins = array<i64: 5>, ends = array<i64: 10>
  // CHECK-DAG: [[V:%[0-9]+]] = "ttir.linear"(%arg0, [[W1]], [[C1]]) {{.*}}transpose_b = true
  // CHECK-DAG: [[W0:%[0-9]+]] = "ttir.slice_static"(%arg1) {begins = array<i64: 0, 0>, ends = array<i64: 5, 4>
  // CHECK-DAG: [[C0:%[0-9]+]] = "ttir.slice_static"(%arg2) {begins = array<i64: 0>, ends = array<i64: 5>
  // CHECK-DAG: [[G:%[0-9]+]] = "ttir.linear"(%arg0, [[W0]], [[C0]]) {activation = "silu"
  // CHECK: "ttir.multiply"([[G]], [[V]])
  %0 = "ttir.linear"(%x, %w, %c) {transpose_a = false, transpose_b = true, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x4xf32>, tensor<10x4xf32>, tensor<10xf32>) -> tensor<2x10xf32>
  %v = "ttir.slice_static"(%0) {begins = array<i64: 0, 5>, ends = array<i64: 2, 10>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x5xf32>
  %g0 = "ttir.slice_static"(%0) {begins = array<i64: 0, 0>, ends = array<i64: 2, 5>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x5xf32>
  %g = "ttir.silu"(%g0) : (tensor<2x5xf32>) -> tensor<2x5xf32>
  %1 = "ttir.multiply"(%g, %v) : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
  return %1 : tensor<2x5xf32>
}

// -----

// The parts have different widths, and the weights are not transposed. Nothing reads the column between the parts.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x10xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x2xf32>, tensor<2x7xf32>) {
  // CHECK-DAG: [[W0:%[0-9]+]] = "ttir.slice_static"(%arg1) {begins = array<i64: 0, 0>, ends = array<i64: 4, 2>
  // CHECK-DAG: [[W1:%[0-9]+]] = "ttir.slice_static"(%arg1) {begins = array<i64: 0, 3>, ends = array<i64: 4, 10>
  // CHECK-DAG: [[A:%[0-9]+]] = "ttir.matmul"(%arg0, [[W0]])
  // CHECK-DAG: [[B:%[0-9]+]] = "ttir.matmul"(%arg0, [[W1]])
  // CHECK: return [[A]], [[B]]
  %0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x10xf32>) -> tensor<2x10xf32>
  %a = "ttir.slice_static"(%0) {begins = array<i64: 0, 0>, ends = array<i64: 2, 2>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x2xf32>
  %b = "ttir.slice_static"(%0) {begins = array<i64: 0, 3>, ends = array<i64: 2, 10>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x7xf32>
  return %a, %b : tensor<2x2xf32>, tensor<2x7xf32>
}

// -----

// The product stays if its weight is an input, if the parts share a column, if they take every second column or only
// some rows, if there are three parts, or if something else reads the product.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xf32>, %y: tensor<4x10xf32>, %w: tensor<4x10xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x6xf32>, tensor<2x5xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<1x5xf32>, tensor<2x5xf32>, tensor<1x5xf32>, tensor<2x5xf32>, tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x10xf32>) {
  // CHECK-COUNT-7: "ttir.matmul"({{.*}} -> tensor<2x10xf32>
  // CHECK-NOT: ttir.matmul
  %x0 = "ttir.full"() {shape = array<i64: 1>, fill_value = 2.0 : f64} : () -> tensor<1xf32>
  %z0 = "ttir.multiply"(%x, %x0) : (tensor<2x4xf32>, tensor<1xf32>) -> tensor<2x4xf32>
  %p0 = "ttir.matmul"(%z0, %y) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x10xf32>) -> tensor<2x10xf32>
  %x1 = "ttir.full"() {shape = array<i64: 1>, fill_value = 3.0 : f64} : () -> tensor<1xf32>
  %z1 = "ttir.multiply"(%x, %x1) : (tensor<2x4xf32>, tensor<1xf32>) -> tensor<2x4xf32>
  %p1 = "ttir.matmul"(%z1, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x10xf32>) -> tensor<2x10xf32>
  %x2 = "ttir.full"() {shape = array<i64: 1>, fill_value = 4.0 : f64} : () -> tensor<1xf32>
  %z2 = "ttir.multiply"(%x, %x2) : (tensor<2x4xf32>, tensor<1xf32>) -> tensor<2x4xf32>
  %p2 = "ttir.matmul"(%z2, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x10xf32>) -> tensor<2x10xf32>
  %x3 = "ttir.full"() {shape = array<i64: 1>, fill_value = 5.0 : f64} : () -> tensor<1xf32>
  %z3 = "ttir.multiply"(%x, %x3) : (tensor<2x4xf32>, tensor<1xf32>) -> tensor<2x4xf32>
  %p3 = "ttir.matmul"(%z3, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x10xf32>) -> tensor<2x10xf32>
  %x4 = "ttir.full"() {shape = array<i64: 1>, fill_value = 6.0 : f64} : () -> tensor<1xf32>
  %z4 = "ttir.multiply"(%x, %x4) : (tensor<2x4xf32>, tensor<1xf32>) -> tensor<2x4xf32>
  %p4 = "ttir.matmul"(%z4, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x10xf32>) -> tensor<2x10xf32>
  %x5 = "ttir.full"() {shape = array<i64: 1>, fill_value = 7.0 : f64} : () -> tensor<1xf32>
  %z5 = "ttir.multiply"(%x, %x5) : (tensor<2x4xf32>, tensor<1xf32>) -> tensor<2x4xf32>
  %p5 = "ttir.matmul"(%z5, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x10xf32>) -> tensor<2x10xf32>
  %x6 = "ttir.full"() {shape = array<i64: 1>, fill_value = 8.0 : f64} : () -> tensor<1xf32>
  %z6 = "ttir.multiply"(%x, %x6) : (tensor<2x4xf32>, tensor<1xf32>) -> tensor<2x4xf32>
  %p6 = "ttir.matmul"(%z6, %w) {transpose_a = false, transpose_b = false} : (tensor<2x4xf32>, tensor<4x10xf32>) -> tensor<2x10xf32>
  %a0 = "ttir.slice_static"(%p0) {begins = array<i64: 0, 0>, ends = array<i64: 2, 5>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x5xf32>
  %a1 = "ttir.slice_static"(%p0) {begins = array<i64: 0, 5>, ends = array<i64: 2, 10>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x5xf32>
  %c0 = "ttir.slice_static"(%p2) {begins = array<i64: 0, 0>, ends = array<i64: 2, 6>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x6xf32>
  %c1 = "ttir.slice_static"(%p2) {begins = array<i64: 0, 5>, ends = array<i64: 2, 10>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x5xf32>
  %d0 = "ttir.slice_static"(%p3) {begins = array<i64: 0, 0>, ends = array<i64: 2, 5>, step = array<i64: 1, 2>} : (tensor<2x10xf32>) -> tensor<2x3xf32>
  %d1 = "ttir.slice_static"(%p3) {begins = array<i64: 0, 5>, ends = array<i64: 2, 10>, step = array<i64: 1, 2>} : (tensor<2x10xf32>) -> tensor<2x3xf32>
  %b0 = "ttir.slice_static"(%p1) {begins = array<i64: 1, 0>, ends = array<i64: 2, 5>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<1x5xf32>
  %b1 = "ttir.slice_static"(%p1) {begins = array<i64: 0, 5>, ends = array<i64: 2, 10>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x5xf32>
  %e0 = "ttir.slice_static"(%p4) {begins = array<i64: 0, 0>, ends = array<i64: 1, 5>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<1x5xf32>
  %e1 = "ttir.slice_static"(%p4) {begins = array<i64: 0, 5>, ends = array<i64: 2, 10>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x5xf32>
  %f0 = "ttir.slice_static"(%p5) {begins = array<i64: 0, 0>, ends = array<i64: 2, 2>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x2xf32>
  %f1 = "ttir.slice_static"(%p5) {begins = array<i64: 0, 2>, ends = array<i64: 2, 5>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x3xf32>
  %f2 = "ttir.slice_static"(%p5) {begins = array<i64: 0, 5>, ends = array<i64: 2, 10>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x5xf32>
  %g0 = "ttir.slice_static"(%p6) {begins = array<i64: 0, 0>, ends = array<i64: 2, 5>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x5xf32>
  %g1 = "ttir.slice_static"(%p6) {begins = array<i64: 0, 5>, ends = array<i64: 2, 10>, step = array<i64: 1, 1>} : (tensor<2x10xf32>) -> tensor<2x5xf32>
  return %a0, %a1, %c0, %c1, %d0, %d1, %b0, %b1, %e0, %e1, %f0, %f1, %f2, %g0, %g1, %p6 : tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x6xf32>, tensor<2x5xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<1x5xf32>, tensor<2x5xf32>, tensor<1x5xf32>, tensor<2x5xf32>, tensor<2x2xf32>, tensor<2x3xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2x10xf32>
}

// -----

// A residual of the product's shape becomes the bias, on either side of the addition.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x40x4xf32>, %w: tensor<4x4xf32>, %r: tensor<2x40x4xf32>) -> (tensor<2x40x4xf32>, tensor<2x40x4xf32>) {
  // CHECK: [[A:%[0-9]+]] = "ttir.linear"(%arg0, %arg1, %arg2) {{.*}}transpose_a = false, transpose_b = true}
  // CHECK: [[B:%[0-9]+]] = "ttir.linear"(%arg0, %arg1, %arg2) {{.*}}transpose_a = false, transpose_b = false}
  // CHECK: return [[A]], [[B]]
  %0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = true} : (tensor<2x40x4xf32>, tensor<4x4xf32>) -> tensor<2x40x4xf32>
  %1 = "ttir.add"(%0, %r) : (tensor<2x40x4xf32>, tensor<2x40x4xf32>) -> tensor<2x40x4xf32>
  %2 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<2x40x4xf32>, tensor<4x4xf32>) -> tensor<2x40x4xf32>
  %3 = "ttir.add"(%r, %2) : (tensor<2x40x4xf32>, tensor<2x40x4xf32>) -> tensor<2x40x4xf32>
  return %1, %3 : tensor<2x40x4xf32>, tensor<2x40x4xf32>
}

// -----

// A residual is no bias if it has 32 rows (one tile), or if it is repeated or repeats the product. It is no bias of a
// product that has a batch of weights, another reader, or integers.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<32x4xf32>, %w: tensor<4x4xf32>, %r: tensor<32x4xf32>, %y: tensor<2x40x4xf32>, %s: tensor<1x40x4xf32>, %b: tensor<2x4x4xf32>, %t: tensor<2x40x4xf32>, %u: tensor<3x2x40x4xf32>, %i: tensor<40x4xi32>, %j: tensor<4x4xi32>) -> (tensor<32x4xf32>, tensor<2x40x4xf32>, tensor<3x2x40x4xf32>, tensor<2x40x4xf32>, tensor<2x40x4xf32>, tensor<2x40x4xf32>, tensor<40x4xi32>) {
  // CHECK-NOT: ttir.linear
  %0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<32x4xf32>, tensor<4x4xf32>) -> tensor<32x4xf32>
  %1 = "ttir.add"(%0, %r) : (tensor<32x4xf32>, tensor<32x4xf32>) -> tensor<32x4xf32>
  %2 = "ttir.matmul"(%y, %w) {transpose_a = false, transpose_b = false} : (tensor<2x40x4xf32>, tensor<4x4xf32>) -> tensor<2x40x4xf32>
  %3 = "ttir.add"(%2, %s) : (tensor<2x40x4xf32>, tensor<1x40x4xf32>) -> tensor<2x40x4xf32>
  %4 = "ttir.matmul"(%y, %w) {transpose_a = false, transpose_b = true} : (tensor<2x40x4xf32>, tensor<4x4xf32>) -> tensor<2x40x4xf32>
  %5 = "ttir.add"(%4, %u) : (tensor<2x40x4xf32>, tensor<3x2x40x4xf32>) -> tensor<3x2x40x4xf32>
  %6 = "ttir.matmul"(%y, %b) {transpose_a = false, transpose_b = false} : (tensor<2x40x4xf32>, tensor<2x4x4xf32>) -> tensor<2x40x4xf32>
  %7 = "ttir.add"(%6, %t) : (tensor<2x40x4xf32>, tensor<2x40x4xf32>) -> tensor<2x40x4xf32>
  %8 = "ttir.matmul"(%t, %w) {transpose_a = false, transpose_b = false} : (tensor<2x40x4xf32>, tensor<4x4xf32>) -> tensor<2x40x4xf32>
  %9 = "ttir.add"(%8, %y) : (tensor<2x40x4xf32>, tensor<2x40x4xf32>) -> tensor<2x40x4xf32>
  %10 = "ttir.matmul"(%i, %j) {transpose_a = false, transpose_b = false} : (tensor<40x4xi32>, tensor<4x4xi32>) -> tensor<40x4xi32>
  %11 = "ttir.add"(%10, %i) : (tensor<40x4xi32>, tensor<40x4xi32>) -> tensor<40x4xi32>
  return %1, %3, %5, %7, %8, %9, %11 : tensor<32x4xf32>, tensor<2x40x4xf32>, tensor<3x2x40x4xf32>, tensor<2x40x4xf32>, tensor<2x40x4xf32>, tensor<2x40x4xf32>, tensor<40x4xi32>
}

// -----

// A row that depends on inputs becomes the bias without a change. A row of a parameter becomes a vector once.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x4xf32>, %w: tensor<4x4xf32>, %r: tensor<1x1x4xf32>, %p: tensor<1x4xf32> {ttcore.argument_type = "parameter"}) -> (tensor<1x1x4xf32>, tensor<1x1x4xf32>) {
  // CHECK-DAG: "ttir.linear"(%arg0, %arg1, %arg2)
  // CHECK-DAG: [[P:%[0-9]+]] = "ttir.reshape"(%arg3) {shape = array<i64: 4>}
  // CHECK-DAG: "ttir.linear"(%arg0, %arg1, [[P]])
  %0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<1x1x4xf32>, tensor<4x4xf32>) -> tensor<1x1x4xf32>
  %1 = "ttir.add"(%r, %0) : (tensor<1x1x4xf32>, tensor<1x1x4xf32>) -> tensor<1x1x4xf32>
  %2 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = true} : (tensor<1x1x4xf32>, tensor<4x4xf32>) -> tensor<1x1x4xf32>
  %3 = "ttir.add"(%2, %p) : (tensor<1x1x4xf32>, tensor<1x4xf32>) -> tensor<1x1x4xf32>
  return %1, %3 : tensor<1x1x4xf32>, tensor<1x1x4xf32>
}
