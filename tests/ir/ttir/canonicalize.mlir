// RUN: %opt --step canonicalize %s | %check

// Chains become one movement.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<4x6xf32> {
  // CHECK-NEXT: [[M:%[0-9]+]] = "ttir.permute"(%arg0) {permutation = array<i64: 2, 0, 1>}
  // CHECK-NEXT: "ttir.reshape"([[M]]) {shape = array<i64: 4, 6>}
  // CHECK-NEXT: return
  %0 = "ttir.permute"(%x) {permutation = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %1 = "ttir.permute"(%0) {permutation = array<i64: 1, 0, 2>} : (tensor<2x4x3xf32>) -> tensor<4x2x3xf32>
  %2 = "ttir.reshape"(%1) {shape = array<i64: 2, 12>} : (tensor<4x2x3xf32>) -> tensor<2x12xf32>
  %3 = "ttir.reshape"(%2) {shape = array<i64: 4, 6>} : (tensor<2x12xf32>) -> tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}

// -----

// Only a dimension of size one moves.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x1x4xf32>) -> tensor<1x2x4xf32> {
  // CHECK-NEXT: "ttir.reshape"(%arg0) {shape = array<i64: 1, 2, 4>}
  %0 = "ttir.permute"(%x) {permutation = array<i64: 1, 0, 2>} : (tensor<2x1x4xf32>) -> tensor<1x2x4xf32>
  return %0 : tensor<1x2x4xf32>
}

// -----

// Element-wise ops broadcast by themselves ...
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x3xf32>, %b: tensor<1x3xf32>) -> tensor<4x3xf32> {
  // CHECK-NEXT: "ttir.add"(%arg0, %arg1) : (tensor<4x3xf32>, tensor<1x3xf32>) -> tensor<4x3xf32>
  %0 = "ttir.broadcast"(%b) {broadcast_dimensions = array<i64: 4, 1>} : (tensor<1x3xf32>) -> tensor<4x3xf32>
  %1 = "ttir.add"(%x, %0) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// -----

// ... but one operand must keep the shape of the result.
// CHECK-LABEL: @main(
func.func @main(%b: tensor<1x3xf32>) -> tensor<4x3xf32> {
  // CHECK: [[WIDE:%[0-9]+]] = "ttir.broadcast"
  // CHECK: "ttir.multiply"({{.*}}[[WIDE]]
  %0 = "ttir.broadcast"(%b) {broadcast_dimensions = array<i64: 4, 1>} : (tensor<1x3xf32>) -> tensor<4x3xf32>
  %1 = "ttir.multiply"(%0, %0) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %1 : tensor<4x3xf32>
}

// -----

// x * 1 is x; x + 0 is not, for -0.0; max(x, 0) is a ReLU.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %one = "ttir.full"() {shape = array<i64: 1>, fill_value = 1.0 : f64} : () -> tensor<1xf32>
  %zero = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.0 : f64} : () -> tensor<1xf32>
  %0 = "ttir.multiply"(%one, %x) : (tensor<1xf32>, tensor<3xf32>) -> tensor<3xf32>
  // CHECK: [[SUM:%[0-9]+]] = "ttir.add"(%arg0,
  %1 = "ttir.add"(%x, %zero) : (tensor<3xf32>, tensor<1xf32>) -> tensor<3xf32>
  // CHECK: [[RELU:%[0-9]+]] = "ttir.relu"(%arg0)
  %2 = "ttir.maximum"(%zero, %x) : (tensor<1xf32>, tensor<3xf32>) -> tensor<3xf32>
  // CHECK-NEXT: return %arg0, [[SUM]], [[RELU]]
  return %0, %1, %2 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// x * 1 that broadcasts x.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1xf32>) -> tensor<3xf32> {
  // CHECK: "ttir.multiply"(%arg0,
  %one = "ttir.full"() {shape = array<i64: 3>, fill_value = 1.0 : f64} : () -> tensor<3xf32>
  %0 = "ttir.multiply"(%x, %one) : (tensor<1xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// Splats fold while all is finite: roots of negatives, NaN and what float32 cannot hold stay.
// CHECK-LABEL: @main(
func.func @main() -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) {
  %two = "ttir.full"() {shape = array<i64: 1>, fill_value = -2.0 : f64} : () -> tensor<1xf32>
  %half = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.5 : f64} : () -> tensor<1xf32>
  %nan = "ttir.full"() {shape = array<i64: 1>, fill_value = 0x7FF8000000000000 : f64} : () -> tensor<1xf32>
  %big = "ttir.full"() {shape = array<i64: 1>, fill_value = 1.0e30 : f64} : () -> tensor<1xf32>
  // CHECK-DAG: fill_value = -1.500000e+00 : f64
  %0 = "ttir.add"(%two, %half) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  // CHECK-DAG: "ttir.pow"
  %1 = "ttir.pow"(%two, %half) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  // CHECK-DAG: "ttir.maximum"
  %2 = "ttir.maximum"(%two, %nan) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  // CHECK-DAG: "ttir.multiply"
  %3 = "ttir.multiply"(%big, %big) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  return %0, %1, %2, %3 : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
}

// -----

// A cast of a splat folds when the type holds the value.
// CHECK-LABEL: @main(
func.func @main() -> (tensor<2xi32>, tensor<2xi32>) {
  %a = "ttir.full"() {shape = array<i64: 2>, fill_value = -2.7 : f64} : () -> tensor<2xf32>
  %b = "ttir.full"() {shape = array<i64: 2>, fill_value = 3.0e10 : f64} : () -> tensor<2xf32>
  // CHECK-DAG: "ttir.full"() {fill_value = -2 : i64
  %0 = "ttir.typecast"(%a) {dtype = i32} : (tensor<2xf32>) -> tensor<2xi32>
  // CHECK-DAG: "ttir.typecast"
  %1 = "ttir.typecast"(%b) {dtype = i32} : (tensor<2xf32>) -> tensor<2xi32>
  return %0, %1 : tensor<2xi32>, tensor<2xi32>
}

// -----

// x * c may overflow, so x * c / c is x only behind an average.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK: "ttir.divide"
  %big = "ttir.full"() {shape = array<i64: 1>, fill_value = 1.0e30 : f64} : () -> tensor<1xf32>
  %0 = "ttir.multiply"(%x, %big) : (tensor<3xf32>, tensor<1xf32>) -> tensor<3xf32>
  %1 = "ttir.divide"(%0, %big) : (tensor<3xf32>, tensor<1xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
