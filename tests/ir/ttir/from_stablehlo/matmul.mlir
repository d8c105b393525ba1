// RUN: %opt --step stablehlo-to-ttir %s | %check

// Operands get batch dimensions first, then one dimension of rows and one that is contracted.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<2x5x3x4xf32>, %b: tensor<2x4x3x7xf32>) -> tensor<2x5x7xf32> {
  // CHECK: [[A:%[0-9]+]] = "ttir.permute"(%arg0) {permutation = array<i64: 0, 1, 3, 2>}
  // CHECK: [[LEFT:%[0-9]+]] = "ttir.reshape"([[A]]) {shape = array<i64: 2, 5, 12>}
  // CHECK: [[RIGHT:%[0-9]+]] = "ttir.reshape"({{.*}}) {shape = array<i64: 2, 12, 7>}
  // CHECK: "ttir.matmul"([[LEFT]], [[RIGHT]]) {{.*}} -> tensor<2x5x7xf32>
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [3, 2] x [1, 2]
    : (tensor<2x5x3x4xf32>, tensor<2x4x3x7xf32>) -> tensor<2x5x7xf32>
  return %0 : tensor<2x5x7xf32>
}

// -----

// Products of vectors, and a result of a wider type than the operands.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<4xf32>, %b: tensor<4x3xf32>, %c: tensor<2x4xbf16>, %d: tensor<4x3xbf16>)
    -> (tensor<3xf32>, tensor<2x3xf32>) {
  // CHECK: [[ROW:%[0-9]+]] = "ttir.reshape"(%arg0) {shape = array<i64: 1, 4>}
  // CHECK: "ttir.matmul"([[ROW]], {{.*}} -> tensor<1x3xf32>
  %0 = stablehlo.dot %a, %b : (tensor<4xf32>, tensor<4x3xf32>) -> tensor<3xf32>
  // CHECK: "ttir.typecast"(%arg2) {dtype = f32}
  // CHECK: "ttir.matmul"({{.*}} -> tensor<2x3xf32>
  %1 = stablehlo.dot_general %c, %d, contracting_dims = [1] x [0] : (tensor<2x4xbf16>, tensor<4x3xbf16>) -> tensor<2x3xf32>
  return %0, %1 : tensor<3xf32>, tensor<2x3xf32>
}
