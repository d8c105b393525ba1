// RUN: %opt --step canonicalize %s | %check

// A permutation moves through an element-wise op and cancels with its inverse.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x4x2x3xf32>) -> tensor<1x4x2x3xf32> {
  // CHECK-NEXT: [[R:%[0-9]+]] = "ttir.relu"(%arg0)
  // CHECK-NEXT: return [[R]]
  %0 = "ttir.permute"(%x) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x4x2x3xf32>) -> tensor<1x2x3x4xf32>
  %1 = "ttir.relu"(%0) : (tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %2 = "ttir.permute"(%1) {permutation = array<i64: 0, 3, 1, 2>} : (tensor<1x2x3x4xf32>) -> tensor<1x4x2x3xf32>
  return %2 : tensor<1x4x2x3xf32>
}

// -----

// The permutation stays if another op reads the permuted value.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x2xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  // CHECK-NEXT: [[T:%[0-9]+]] = "ttir.permute"(%arg0)
  // CHECK-NEXT: [[R:%[0-9]+]] = "ttir.relu"([[T]])
  // CHECK-NEXT: return [[T]], [[R]]
  %0 = "ttir.permute"(%x) {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %1 = "ttir.relu"(%0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// An operand of lower rank, which is broadcast, is permuted back.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x2xf32>, %v: tensor<4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: [[V:%[0-9]+]] = "ttir.reshape"(%arg1) {shape = array<i64: 4, 1>}
  // CHECK-NEXT: [[S:%[0-9]+]] = "ttir.subtract"([[V]], %arg0) : (tensor<4x1xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  // CHECK-NEXT: "ttir.permute"([[S]]) {permutation = array<i64: 1, 0>}
  %0 = "ttir.permute"(%x) {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %1 = "ttir.subtract"(%v, %0) : (tensor<4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// A reshape stays before the op if its result is the operand that is broadcast.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4xf32>, %v: tensor<3x4xf32>) -> tensor<3x4xf32> {
  // CHECK: [[W:%[0-9]+]] = "ttir.reshape"(%arg0)
  // CHECK: "ttir.add"([[W]], %arg1)
  %0 = "ttir.reshape"(%x) {shape = array<i64: 1, 4>} : (tensor<4xf32>) -> tensor<1x4xf32>
  %1 = "ttir.add"(%0, %v) : (tensor<1x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}

// -----

// A reshape that changes the last dimension does not move through an op with a vector along it.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6xf32>, %v: tensor<3xf32>) -> tensor<4x3xf32> {
  // CHECK: [[W:%[0-9]+]] = "ttir.reshape"(%arg0)
  // CHECK: "ttir.add"([[W]], %arg1)
  %0 = "ttir.reshape"(%x) {shape = array<i64: 4, 3>} : (tensor<2x6xf32>) -> tensor<4x3xf32>
  %1 = "ttir.add"(%0, %v) : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// -----

// A reduction that moves before a permutation reduces the dimensions from which its own ones came.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<4x2xf32> {
  // CHECK-NEXT: [[S:%[0-9]+]] = "ttir.sum"(%arg0) {dim_arg = array<i64: 1>
  // CHECK-NEXT: "ttir.permute"([[S]]) {permutation = array<i64: 1, 0>}
  %0 = "ttir.permute"(%x) {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %1 = "ttir.sum"(%0) {dim_arg = array<i64: -1>, keep_dim = false} : (tensor<4x2x3xf32>) -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}

// -----

// The rows of a matrix product may have several dimensions.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>) -> tensor<6x5xf32> {
  // CHECK-NEXT: "ttir.matmul"(%arg0, %arg1) {{.*}} -> tensor<2x3x5xf32>
  %0 = "ttir.reshape"(%x) {shape = array<i64: 6, 4>} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = "ttir.matmul"(%0, %w) {transpose_a = false, transpose_b = false} : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  return %1 : tensor<6x5xf32>
}

// -----

// One index of a dimension becomes a slice of this dimension joined with the next one. Other dimensions may be cut.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x24xf32>) -> (tensor<4x2x4xf32>, tensor<2x2x4xf32>) {
  // CHECK: [[A:%[0-9]+]] = "ttir.reshape"(%arg0) {shape = array<i64: 4, 2, 12>}
  // CHECK: "ttir.slice_static"([[A]]) {begins = array<i64: 0, 0, 4>, ends = array<i64: 4, 2, 8>, step = array<i64: 1, 1, 1>}
  // CHECK: [[B:%[0-9]+]] = "ttir.reshape"(%arg0) {shape = array<i64: 4, 2, 12>}
  // CHECK: "ttir.slice_static"([[B]]) {begins = array<i64: 0, 0, 8>, ends = array<i64: 4, 2, 12>, step = array<i64: 2, 1, 1>}
  // CHECK-NOT: ttir.reshape
  %0 = "ttir.reshape"(%x) {shape = array<i64: 4, 2, 3, 4>} : (tensor<4x24xf32>) -> tensor<4x2x3x4xf32>
  %1 = "ttir.slice_static"(%0) {begins = array<i64: 0, 0, 1, 0>, ends = array<i64: 4, 2, 2, 4>, step = array<i64: 1, 1, 1, 1>} : (tensor<4x2x3x4xf32>) -> tensor<4x2x1x4xf32>
  %2 = "ttir.reshape"(%1) {shape = array<i64: 4, 2, 4>} : (tensor<4x2x1x4xf32>) -> tensor<4x2x4xf32>
  %3 = "ttir.slice_static"(%0) {begins = array<i64: 0, 0, 2, 0>, ends = array<i64: 4, 2, 3, 4>, step = array<i64: 2, 1, 1, 1>} : (tensor<4x2x3x4xf32>) -> tensor<2x2x1x4xf32>
  %4 = "ttir.reshape"(%3) {shape = array<i64: 2, 2, 4>} : (tensor<2x2x1x4xf32>) -> tensor<2x2x4xf32>
  return %2, %4 : tensor<4x2x4xf32>, tensor<2x2x4xf32>
}

// -----

// The slice stays if it also cuts the next dimension, if it takes two indices, or if the tensor is not reshaped.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x12xf32>, %y: tensor<4x3x2xf32>) -> (tensor<4x2xf32>, tensor<8x4xf32>, tensor<4x2xf32>) {
  // CHECK-COUNT-3: "ttir.slice_static"({{.*}}) {begins = array<i64: 0, 1, 0>
  %0 = "ttir.reshape"(%x) {shape = array<i64: 4, 3, 4>} : (tensor<4x12xf32>) -> tensor<4x3x4xf32>
  %1 = "ttir.slice_static"(%0) {begins = array<i64: 0, 1, 0>, ends = array<i64: 4, 2, 2>, step = array<i64: 1, 1, 1>} : (tensor<4x3x4xf32>) -> tensor<4x1x2xf32>
  %2 = "ttir.reshape"(%1) {shape = array<i64: 4, 2>} : (tensor<4x1x2xf32>) -> tensor<4x2xf32>
  %3 = "ttir.slice_static"(%0) {begins = array<i64: 0, 1, 0>, ends = array<i64: 4, 3, 4>, step = array<i64: 1, 1, 1>} : (tensor<4x3x4xf32>) -> tensor<4x2x4xf32>
  %4 = "ttir.reshape"(%3) {shape = array<i64: 8, 4>} : (tensor<4x2x4xf32>) -> tensor<8x4xf32>
  %5 = "ttir.slice_static"(%y) {begins = array<i64: 0, 1, 0>, ends = array<i64: 4, 2, 2>, step = array<i64: 1, 1, 1>} : (tensor<4x3x2xf32>) -> tensor<4x1x2xf32>
  %6 = "ttir.reshape"(%5) {shape = array<i64: 4, 2>} : (tensor<4x1x2xf32>) -> tensor<4x2xf32>
  return %2, %4, %6 : tensor<4x2xf32>, tensor<8x4xf32>, tensor<4x2xf32>
}

// -----

// One index of the last dimension is a slice with steps of the tensor before, also if other dimensions are cut.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x24xf32>) -> (tensor<4x12xf32>, tensor<2x3xf32>) {
  // CHECK: "ttir.slice_static"(%arg0) {begins = array<i64: 0, 1>, ends = array<i64: 4, 24>, step = array<i64: 1, 2>}
  // CHECK: "ttir.slice_static"(%arg0) {begins = array<i64: 2, 6>, ends = array<i64: 4, 15>, step = array<i64: 1, 4>}
  // CHECK-NOT: ttir.reshape
  %0 = "ttir.reshape"(%x) {shape = array<i64: 4, 12, 2>} : (tensor<4x24xf32>) -> tensor<4x12x2xf32>
  %1 = "ttir.slice_static"(%0) {begins = array<i64: 0, 0, 1>, ends = array<i64: 4, 12, 2>, step = array<i64: 1, 1, 1>} : (tensor<4x12x2xf32>) -> tensor<4x12x1xf32>
  %2 = "ttir.reshape"(%1) {shape = array<i64: 4, 12>} : (tensor<4x12x1xf32>) -> tensor<4x12xf32>
  %3 = "ttir.slice_static"(%0) {begins = array<i64: 2, 3, 0>, ends = array<i64: 4, 8, 1>, step = array<i64: 1, 2, 1>} : (tensor<4x12x2xf32>) -> tensor<2x3x1xf32>
  %4 = "ttir.reshape"(%3) {shape = array<i64: 2, 3>} : (tensor<2x3x1xf32>) -> tensor<2x3xf32>
  return %2, %4 : tensor<4x12xf32>, tensor<2x3xf32>
}

// -----

// The slice stays if it takes two indices, if the tensor is not reshaped, if there is no other dimension, or if the last
// two dimensions are not those of one dimension before.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x24xf32>, %y: tensor<4x12x2xf32>, %z: tensor<2x3xf32>) -> (tensor<4x16xf32>, tensor<4x12xf32>, tensor<2x12xf32>, tensor<f32>) {
  // CHECK-COUNT-3: "ttir.slice_static"({{.*}}) {begins = array<i64: 0, 0, 1>
  // CHECK: "ttir.slice_static"({{.*}}) {begins = array<i64: 1>
  %0 = "ttir.reshape"(%x) {shape = array<i64: 4, 8, 3>} : (tensor<4x24xf32>) -> tensor<4x8x3xf32>
  %1 = "ttir.slice_static"(%0) {begins = array<i64: 0, 0, 1>, ends = array<i64: 4, 8, 3>, step = array<i64: 1, 1, 1>} : (tensor<4x8x3xf32>) -> tensor<4x8x2xf32>
  %2 = "ttir.reshape"(%1) {shape = array<i64: 4, 16>} : (tensor<4x8x2xf32>) -> tensor<4x16xf32>
  %3 = "ttir.slice_static"(%y) {begins = array<i64: 0, 0, 1>, ends = array<i64: 4, 12, 2>, step = array<i64: 1, 1, 1>} : (tensor<4x12x2xf32>) -> tensor<4x12x1xf32>
  %4 = "ttir.reshape"(%3) {shape = array<i64: 4, 12>} : (tensor<4x12x1xf32>) -> tensor<4x12xf32>
  %5 = "ttir.reshape"(%x) {shape = array<i64: 2, 12, 4>} : (tensor<4x24xf32>) -> tensor<2x12x4xf32>
  %6 = "ttir.slice_static"(%5) {begins = array<i64: 0, 0, 1>, ends = array<i64: 2, 12, 2>, step = array<i64: 1, 1, 1>} : (tensor<2x12x4xf32>) -> tensor<2x12x1xf32>
  %7 = "ttir.reshape"(%6) {shape = array<i64: 2, 12>} : (tensor<2x12x1xf32>) -> tensor<2x12xf32>
  %8 = "ttir.reshape"(%z) {shape = array<i64: 6>} : (tensor<2x3xf32>) -> tensor<6xf32>
  %9 = "ttir.slice_static"(%8) {begins = array<i64: 1>, ends = array<i64: 2>, step = array<i64: 1>} : (tensor<6xf32>) -> tensor<1xf32>
  %10 = "ttir.reshape"(%9) {shape = array<i64>} : (tensor<1xf32>) -> tensor<f32>
  return %2, %4, %7, %10 : tensor<4x16xf32>, tensor<4x12xf32>, tensor<2x12xf32>, tensor<f32>
}

// -----

// Reshapes of the batches of both factors move behind the product.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x4x5xf32>, %y: tensor<2x3x6x5xf32>) -> tensor<6x4x6xf32> {
  // CHECK-NEXT: [[M:%[0-9]+]] = "ttir.matmul"(%arg0, %arg1) {transpose_a = false, transpose_b = true}
  // CHECK-NEXT: "ttir.reshape"([[M]]) {shape = array<i64: 6, 4, 6>}
  %0 = "ttir.reshape"(%x) {shape = array<i64: 6, 4, 5>} : (tensor<2x3x4x5xf32>) -> tensor<6x4x5xf32>
  %1 = "ttir.reshape"(%y) {shape = array<i64: 6, 6, 5>} : (tensor<2x3x6x5xf32>) -> tensor<6x6x5xf32>
  %2 = "ttir.matmul"(%0, %1) {transpose_a = false, transpose_b = true} : (tensor<6x4x5xf32>, tensor<6x6x5xf32>) -> tensor<6x4x6xf32>
  return %2 : tensor<6x4x6xf32>
}

// -----

// The reshapes stay if the batches differ, if a matrix is reshaped, or if another op reads a reshaped factor.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x4x4xf32>, %y: tensor<3x2x4x4xf32>, %z: tensor<2x3x2x8xf32>) -> (tensor<6x4x4xf32>, tensor<6x4x4xf32>, tensor<6x4x4xf32>, tensor<6x4x4xf32>) {
  // CHECK: "ttir.matmul"({{.*}}) {{.*}} : (tensor<6x4x4xf32>, tensor<6x4x4xf32>)
  // CHECK: "ttir.matmul"({{.*}}) {{.*}} : (tensor<6x4x4xf32>, tensor<6x4x4xf32>)
  // CHECK: "ttir.matmul"({{.*}}) {{.*}} : (tensor<6x4x4xf32>, tensor<6x4x4xf32>)
  %0 = "ttir.reshape"(%x) {shape = array<i64: 6, 4, 4>} : (tensor<2x3x4x4xf32>) -> tensor<6x4x4xf32>
  %1 = "ttir.reshape"(%y) {shape = array<i64: 6, 4, 4>} : (tensor<3x2x4x4xf32>) -> tensor<6x4x4xf32>
  %2 = "ttir.matmul"(%0, %1) {transpose_a = false, transpose_b = false} : (tensor<6x4x4xf32>, tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  %3 = "ttir.reshape"(%x) {shape = array<i64: 6, 4, 4>} : (tensor<2x3x4x4xf32>) -> tensor<6x4x4xf32>
  %4 = "ttir.reshape"(%z) {shape = array<i64: 6, 4, 4>} : (tensor<2x3x2x8xf32>) -> tensor<6x4x4xf32>
  %5 = "ttir.matmul"(%3, %4) {transpose_a = false, transpose_b = false} : (tensor<6x4x4xf32>, tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  %6 = "ttir.reshape"(%x) {shape = array<i64: 6, 4, 4>} : (tensor<2x3x4x4xf32>) -> tensor<6x4x4xf32>
  %7 = "ttir.reshape"(%x) {shape = array<i64: 6, 4, 4>} : (tensor<2x3x4x4xf32>) -> tensor<6x4x4xf32>
  %8 = "ttir.matmul"(%6, %7) {transpose_a = false, transpose_b = false} : (tensor<6x4x4xf32>, tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  return %2, %5, %8, %6 : tensor<6x4x4xf32>, tensor<6x4x4xf32>, tensor<6x4x4xf32>, tensor<6x4x4xf32>
}

// -----

// A reshape moves behind a normalization if it keeps the last dimension.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x4xf32>, %y: tensor<3x8xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
  // CHECK: [[X:%[0-9]+]] = "ttir.layer_norm"(%arg0)
  // CHECK: "ttir.reshape"([[X]]) {shape = array<i64: 6, 4>}
  // CHECK: [[Y:%[0-9]+]] = "ttir.reshape"(%arg1)
  // CHECK: "ttir.rms_norm"([[Y]])
  %0 = "ttir.reshape"(%x) {shape = array<i64: 6, 4>} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = "ttir.layer_norm"(%0) {epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<6x4xf32>) -> tensor<6x4xf32>
  %2 = "ttir.reshape"(%y) {shape = array<i64: 6, 4>} : (tensor<3x8xf32>) -> tensor<6x4xf32>
  %3 = "ttir.rms_norm"(%2) {epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0>} : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return %1, %3 : tensor<6x4xf32>, tensor<6x4xf32>
}

// -----

// A vector along the last dimension keeps its place, in the number of dimensions that the other operand has.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x4xf32>, %v: tensor<4xf32>) -> tensor<6x4xf32> {
  // CHECK: [[V:%[0-9]+]] = "ttir.reshape"(%arg1) {shape = array<i64: 1, 1, 4>}
  // CHECK: [[S:%[0-9]+]] = "ttir.subtract"(%arg0, [[V]])
  // CHECK: "ttir.reshape"([[S]]) {shape = array<i64: 6, 4>}
  %0 = "ttir.reshape"(%x) {shape = array<i64: 6, 4>} : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = "ttir.subtract"(%0, %v) : (tensor<6x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}

// -----

// Ids are looked up in the shape that they have.
// CHECK-LABEL: @main(
func.func @main(%i: tensor<2x3xi32>, %w: tensor<7x8xbf16>) -> tensor<2x3x8xbf16> {
  // CHECK-NEXT: "ttir.embedding"(%arg0, %arg1) : {{.*}} -> tensor<2x3x8xbf16>
  // CHECK-NEXT: return
  %0 = "ttir.reshape"(%i) {shape = array<i64: 6>} : (tensor<2x3xi32>) -> tensor<6xi32>
  %1 = "ttir.embedding"(%0, %w) : (tensor<6xi32>, tensor<7x8xbf16>) -> tensor<6x8xbf16>
  %2 = "ttir.reshape"(%1) {shape = array<i64: 2, 3, 8>} : (tensor<6x8xbf16>) -> tensor<2x3x8xbf16>
  return %2 : tensor<2x3x8xbf16>
}

// -----

// The library takes ids of two dimensions, and no more.
// CHECK-LABEL: @main(
func.func @main(%i: tensor<2x3x1xi32>, %w: tensor<7x8xbf16>) -> tensor<6x8xbf16> {
  // CHECK: "ttir.embedding"(%0, %arg1) : (tensor<6xi32>
  %0 = "ttir.reshape"(%i) {shape = array<i64: 6>} : (tensor<2x3x1xi32>) -> tensor<6xi32>
  %1 = "ttir.embedding"(%0, %w) : (tensor<6xi32>, tensor<7x8xbf16>) -> tensor<6x8xbf16>
  return %1 : tensor<6x8xbf16>
}

// -----

// Two permutations stay if they are different, although they lead to the same shape.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x2x2xf32>, %y: tensor<2x2x2xf32>) -> tensor<2x2x2xf32> {
  // CHECK-NEXT: [[X:%[0-9]+]] = "ttir.permute"(%arg0) {{.*}}1, 0, 2>
  // CHECK-NEXT: [[Y:%[0-9]+]] = "ttir.permute"(%arg1) {{.*}}2, 1, 0>
  // CHECK-NEXT: [[S:%[0-9]+]] = "ttir.subtract"([[X]], [[Y]])
  // CHECK-NEXT: return [[S]]
  %0 = "ttir.permute"(%x) {permutation = array<i64: 1, 0, 2>} : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %1 = "ttir.permute"(%y) {permutation = array<i64: 2, 1, 0>} : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %2 = "ttir.subtract"(%0, %1) : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  return %2 : tensor<2x2x2xf32>
}

// -----

// A permutation does not move behind an op with another tensor of this size, because it would be permuted instead.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x2xf32>, %y: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: [[T:%[0-9]+]] = "ttir.permute"(%arg0)
  // CHECK-NEXT: [[S:%[0-9]+]] = "ttir.subtract"([[T]], %arg1)
  // CHECK-NEXT: return [[S]]
  %0 = "ttir.permute"(%x) {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %1 = "ttir.subtract"(%0, %y) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// The permutation moves if the other tensor is a constant, which is permuted once.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x2xf32>) -> tensor<2x4xf32> {
  // CHECK: [[C:%[0-9]+]] = "ttir.permute"({{.*}}) {permutation = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  // CHECK-NEXT: [[S:%[0-9]+]] = "ttir.subtract"(%arg0, [[C]])
  // CHECK-NEXT: [[T:%[0-9]+]] = "ttir.permute"([[S]])
  // CHECK-NEXT: return [[T]]
  %0 = "ttir.permute"(%x) {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %c = "ttir.constant"() {value = dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>} : () -> tensor<2x4xf32>
  %1 = "ttir.subtract"(%0, %c) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// A reshape of a column to a matrix stays before the op: each row of the column is a whole row of tiles.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1024x1xf32>, %v: tensor<f32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  // CHECK-NEXT: [[A:%[0-9]+]] = "ttir.reshape"(%arg0) {shape = array<i64: 32, 32>}
  // CHECK-NEXT: "ttir.exp"([[A]])
  // CHECK: [[B:%[0-9]+]] = "ttir.reshape"(%arg0) {shape = array<i64: 32, 32>}
  // CHECK: "ttir.add"([[B]], %{{.*}}) : (tensor<32x32xf32>,
  %0 = "ttir.reshape"(%x) {shape = array<i64: 32, 32>} : (tensor<1024x1xf32>) -> tensor<32x32xf32>
  %1 = "ttir.exp"(%0) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %2 = "ttir.reshape"(%x) {shape = array<i64: 32, 32>} : (tensor<1024x1xf32>) -> tensor<32x32xf32>
  %3 = "ttir.add"(%2, %v) : (tensor<32x32xf32>, tensor<f32>) -> tensor<32x32xf32>
  return %1, %3 : tensor<32x32xf32>, tensor<32x32xf32>
}

// -----

// A reshape moves if it halves the number of tiles. A value of 64 x 16 has two tiles, and one of 32 x 32 has one.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<64x16xf32>) -> tensor<32x32xf32> {
  // CHECK-NEXT: [[A:%[0-9]+]] = "ttir.exp"(%arg0)
  // CHECK-NEXT: "ttir.reshape"([[A]])
  %0 = "ttir.reshape"(%x) {shape = array<i64: 32, 32>} : (tensor<64x16xf32>) -> tensor<32x32xf32>
  %1 = "ttir.exp"(%0) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}

// -----

// Ids of one column are looked up as a vector, whose rows fill tiles; ids of 4 x 32 are looked up as they are.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<128x1xi32>, %y: tensor<4x32xi32>, %t: tensor<8x64xf32>) -> (tensor<128x64xf32>, tensor<128x64xf32>) {
  // CHECK: [[A:%[0-9]+]] = "ttir.reshape"(%arg0) {shape = array<i64: 128>}
  // CHECK: "ttir.embedding"([[A]], %arg2)
  // CHECK: "ttir.embedding"(%arg1, %arg2)
  %0 = "ttir.reshape"(%x) {shape = array<i64: 128>} : (tensor<128x1xi32>) -> tensor<128xi32>
  %1 = "ttir.embedding"(%0, %t) : (tensor<128xi32>, tensor<8x64xf32>) -> tensor<128x64xf32>
  %2 = "ttir.reshape"(%y) {shape = array<i64: 128>} : (tensor<4x32xi32>) -> tensor<128xi32>
  %3 = "ttir.embedding"(%2, %t) : (tensor<128xi32>, tensor<8x64xf32>) -> tensor<128x64xf32>
  return %1, %3 : tensor<128x64xf32>, tensor<128x64xf32>
}

// -----

// A product reads rows of several dimensions only if they need no more tiles. 8 matrices of one row need 8 tile rows.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<8x1x64xf32>, %w: tensor<64x32xf32>) -> tensor<8x32xf32> {
  // CHECK: [[A:%[0-9]+]] = "ttir.reshape"(%arg0) {shape = array<i64: 8, 64>}
  // CHECK: "ttir.matmul"([[A]], %arg1)
  %0 = "ttir.reshape"(%x) {shape = array<i64: 8, 64>} : (tensor<8x1x64xf32>) -> tensor<8x64xf32>
  %1 = "ttir.matmul"(%0, %w) {transpose_a = false, transpose_b = false} : (tensor<8x64xf32>, tensor<64x32xf32>) -> tensor<8x32xf32>
  return %1 : tensor<8x32xf32>
}

// -----

// A vector of channels follows an operand whose reshape only adds and removes dimensions of size 1.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x2x240xf32>, %v: tensor<240x1x1xf32>) -> tensor<2x240x1x1xf32> {
  // CHECK-NEXT: [[V:%[0-9]+]] = "ttir.reshape"(%arg1) {shape = array<i64: 1, 1, 1, 240>}
  // CHECK-NEXT: [[M:%[0-9]+]] = "ttir.multiply"(%arg0, [[V]]) : (tensor<1x1x2x240xf32>, tensor<1x1x1x240xf32>) -> tensor<1x1x2x240xf32>
  // CHECK-NEXT: "ttir.reshape"([[M]]) {shape = array<i64: 2, 240, 1, 1>}
  %0 = "ttir.reshape"(%x) {shape = array<i64: 2, 240, 1, 1>} : (tensor<1x1x2x240xf32>) -> tensor<2x240x1x1xf32>
  %1 = "ttir.multiply"(%0, %v) : (tensor<2x240x1x1xf32>, tensor<240x1x1xf32>) -> tensor<2x240x1x1xf32>
  return %1 : tensor<2x240x1x1xf32>
}

// -----

// The vector stays if the reshape joins dimensions: the 6 columns of the result are no dimension of the operand.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x4xf32>, %v: tensor<4xf32>) -> tensor<6x4x1xf32> {
  // CHECK: "ttir.reshape"(%arg0) {shape = array<i64: 6, 4, 1>}
  // CHECK: "ttir.add"({{.*}}) : (tensor<6x4x1xf32>, tensor<4x1xf32>) -> tensor<6x4x1xf32>
  %0 = "ttir.reshape"(%x) {shape = array<i64: 6, 4, 1>} : (tensor<2x3x4xf32>) -> tensor<6x4x1xf32>
  %w = "ttir.reshape"(%v) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %1 = "ttir.add"(%0, %w) : (tensor<6x4x1xf32>, tensor<4x1xf32>) -> tensor<6x4x1xf32>
  return %1 : tensor<6x4x1xf32>
}

// -----

// Pixels that a reshape has parted into rows and columns stay joined for a mean over them.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x98x64xf32>) -> tensor<2x64xf32> {
  // CHECK-NEXT: [[P:%[0-9]+]] = "ttir.reshape"(%arg0) {shape = array<i64: 2, 49, 64>}
  // CHECK-NEXT: "ttir.mean"([[P]]) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<2x49x64xf32>) -> tensor<2x64xf32>
  %0 = "ttir.reshape"(%x) {shape = array<i64: 2, 7, 7, 64>} : (tensor<1x1x98x64xf32>) -> tensor<2x7x7x64xf32>
  %1 = "ttir.mean"(%0) {dim_arg = array<i64: 1, 2>, keep_dim = false} : (tensor<2x7x7x64xf32>) -> tensor<2x64xf32>
  return %1 : tensor<2x64xf32>
}

// -----

// The reduced dimensions come back as dimensions of size 1.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<98x64xf32>) -> tensor<2x1x1x64xf32> {
  // CHECK: [[M:%[0-9]+]] = "ttir.max"({{.*}} {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<2x49x64xf32>) -> tensor<2x64xf32>
  // CHECK-NEXT: "ttir.reshape"([[M]]) {shape = array<i64: 2, 1, 1, 64>}
  %0 = "ttir.reshape"(%x) {shape = array<i64: 2, 7, 7, 64>} : (tensor<98x64xf32>) -> tensor<2x7x7x64xf32>
  %1 = "ttir.max"(%0) {dim_arg = array<i64: 1, 2>, keep_dim = true} : (tensor<2x7x7x64xf32>) -> tensor<2x1x1x64xf32>
  return %1 : tensor<2x1x1x64xf32>
}

// -----

// Dimensions stay apart if they are no neighbours, if one of them has the columns, or for a product of the elements.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<98x64xf32>) -> (tensor<7x64xf32>, tensor<2x7xf32>, tensor<2x64xf32>) {
  // CHECK: "ttir.sum"({{.*}} {dim_arg = array<i64: 0, 2>
  // CHECK: "ttir.sum"({{.*}} {dim_arg = array<i64: 2, 3>
  // CHECK: "ttir.prod"({{.*}} {dim_arg = array<i64: 1, 2>
  %0 = "ttir.reshape"(%x) {shape = array<i64: 2, 7, 7, 64>} : (tensor<98x64xf32>) -> tensor<2x7x7x64xf32>
  %1 = "ttir.sum"(%0) {dim_arg = array<i64: 0, 2>, keep_dim = false} : (tensor<2x7x7x64xf32>) -> tensor<7x64xf32>
  %2 = "ttir.sum"(%0) {dim_arg = array<i64: 2, 3>, keep_dim = false} : (tensor<2x7x7x64xf32>) -> tensor<2x7xf32>
  %3 = "ttir.prod"(%0) {dim_arg = array<i64: 1, 2>, keep_dim = false} : (tensor<2x7x7x64xf32>) -> tensor<2x64xf32>
  return %1, %2, %3 : tensor<7x64xf32>, tensor<2x7xf32>, tensor<2x64xf32>
}
