// RUN: %opt --step canonicalize %s | %check

// A chain of permutations becomes one, and so does a chain of reshapes.
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

// A permutation that only moves a dimension of size one becomes a reshape.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x1x4xf32>) -> tensor<1x2x4xf32> {
  // CHECK-NEXT: "ttir.reshape"(%arg0) {shape = array<i64: 1, 2, 4>}
  %0 = "ttir.permute"(%x) {permutation = array<i64: 1, 0, 2>} : (tensor<2x1x4xf32>) -> tensor<1x2x4xf32>
  return %0 : tensor<1x2x4xf32>
}

// -----

// A permute leaves out dimensions of size 1 if one of them is among the last two, before or after. So the two permutes
// of an einsum become one.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x6x20xf32>, %y: tensor<3x4x1xf32>, %z: tensor<1x3x4x5xf32>) -> (tensor<2x5x4x3x1xf32>, tensor<1x4x3xf32>, tensor<1x4x3x5xf32>) {
  // CHECK: [[X:%[0-9]+]] = "ttir.reshape"(%arg0) {shape = array<i64: 3, 2, 4, 5>}
  // CHECK: "ttir.permute"([[X]]) {permutation = array<i64: 1, 3, 2, 0>}
  // CHECK: "ttir.permute"({{.*}}) {permutation = array<i64: 1, 0>} : (tensor<3x4xf32>)
  // CHECK: "ttir.permute"(%arg2) {permutation = array<i64: 0, 2, 1, 3>}
  // CHECK-NOT: ttir.permute
  %0 = "ttir.reshape"(%x) {shape = array<i64: 3, 2, 4, 5, 1>} : (tensor<1x6x20xf32>) -> tensor<3x2x4x5x1xf32>
  %1 = "ttir.permute"(%0) {permutation = array<i64: 1, 3, 0, 4, 2>} : (tensor<3x2x4x5x1xf32>) -> tensor<2x5x3x1x4xf32>
  %2 = "ttir.permute"(%1) {permutation = array<i64: 0, 1, 4, 2, 3>} : (tensor<2x5x3x1x4xf32>) -> tensor<2x5x4x3x1xf32>
  %3 = "ttir.permute"(%y) {permutation = array<i64: 2, 1, 0>} : (tensor<3x4x1xf32>) -> tensor<1x4x3xf32>
  %4 = "ttir.permute"(%z) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x3x4x5xf32>) -> tensor<1x4x3x5xf32>
  return %2, %3, %4 : tensor<2x5x4x3x1xf32>, tensor<1x4x3xf32>, tensor<1x4x3x5xf32>
}

// -----

// Element-wise ops broadcast their operands, so a broadcast before them is removed ...
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

// x * 1 is x; x + 0 is not x, because of -0.0; max(x, 0) is a ReLU.
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

// An operand with the same number everywhere becomes one element. It keeps its shape if no other operand gives this
// shape to the result.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x3xf32>, %y: tensor<1x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  // CHECK-DAG: [[ONE:%[0-9]+]] = "ttir.full"() {fill_value = 2.{{.*}} -> tensor<1xf32>
  // CHECK-DAG: [[ALL:%[0-9]+]] = "ttir.full"() {fill_value = 3.{{.*}} -> tensor<4x3xf32>
  // CHECK-DAG: "ttir.add"(%arg0, [[ONE]])
  // CHECK-DAG: "ttir.add"(%arg1, [[ALL]])
  %two = "ttir.full"() {shape = array<i64: 4, 3>, fill_value = 2.0 : f64} : () -> tensor<4x3xf32>
  %three = "ttir.full"() {shape = array<i64: 4, 3>, fill_value = 3.0 : f64} : () -> tensor<4x3xf32>
  %0 = "ttir.add"(%x, %two) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = "ttir.add"(%y, %three) : (tensor<1x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %0, %1 : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// x * 1 stays if it broadcasts x.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1xf32>) -> tensor<3xf32> {
  // CHECK: "ttir.multiply"(%arg0,
  %one = "ttir.full"() {shape = array<i64: 3>, fill_value = 1.0 : f64} : () -> tensor<3xf32>
  %0 = "ttir.multiply"(%x, %one) : (tensor<1xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// A ReLU that repeats its operand as a maximum repeats the result: max(-0.0, 0.0) would be 0.0.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x3xf32>) -> tensor<2x3xf32> {
  %zero = "ttir.full"() {shape = array<i64: 2, 3>, fill_value = 0.0 : f64} : () -> tensor<2x3xf32>
  // CHECK: [[RELU:%[0-9]+]] = "ttir.relu"(%arg0)
  // CHECK-NEXT: "ttir.broadcast"([[RELU]]) {broadcast_dimensions = array<i64: 2, 1>}
  %0 = "ttir.maximum"(%x, %zero) : (tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Splats fold if all values are finite. Roots of negatives, NaN, and results that float32 cannot hold do not fold.
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

// A cast of a splat folds if the type can hold the value.
// CHECK-LABEL: @main(
func.func @main() -> (tensor<2xi32>, tensor<2xi32>, tensor<2xbf16>) {
  %a = "ttir.full"() {shape = array<i64: 2>, fill_value = -2.7 : f64} : () -> tensor<2xf32>
  %b = "ttir.full"() {shape = array<i64: 2>, fill_value = 1.6e10 : f64} : () -> tensor<2xf32>
  // CHECK-DAG: "ttir.full"() {fill_value = -2 : i64
  %0 = "ttir.typecast"(%a) {dtype = i32} : (tensor<2xf32>) -> tensor<2xi32>
  // CHECK-DAG: "ttir.typecast"
  %1 = "ttir.typecast"(%b) {dtype = i32} : (tensor<2xf32>) -> tensor<2xi32>
  // CHECK-DAG: "ttir.full"() {fill_value = 1.6{{0*e\+10}} : f64, {{.*}} -> tensor<2xbf16>
  %2 = "ttir.typecast"(%b) {dtype = bf16} : (tensor<2xf32>) -> tensor<2xbf16>
  return %0, %1, %2 : tensor<2xi32>, tensor<2xi32>, tensor<2xbf16>
}

// -----

// x * c may overflow, so x * c / c is not x, except after an average.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK: "ttir.divide"
  %big = "ttir.full"() {shape = array<i64: 1>, fill_value = 1.0e30 : f64} : () -> tensor<1xf32>
  %0 = "ttir.multiply"(%x, %big) : (tensor<3xf32>, tensor<1xf32>) -> tensor<3xf32>
  %1 = "ttir.divide"(%0, %big) : (tensor<3xf32>, tensor<1xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}

// -----

// All arithmetic on splats folds.
// CHECK-LABEL: @main(
func.func @main() -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) {
  %six = "ttir.full"() {shape = array<i64: 1>, fill_value = 6.0 : f64} : () -> tensor<1xf32>
  %two = "ttir.full"() {shape = array<i64: 1>, fill_value = 2.0 : f64} : () -> tensor<1xf32>
  // CHECK-DAG: fill_value = 8.000000e+00 : f64
  %0 = "ttir.add"(%six, %two) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  // CHECK-DAG: fill_value = 3.000000e+00 : f64
  %1 = "ttir.divide"(%six, %two) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %2 = "ttir.subtract"(%six, %two) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  // CHECK-DAG: fill_value = 1.200000e+01 : f64
  %3 = "ttir.multiply"(%six, %two) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  // CHECK-DAG: fill_value = 3.600000e+01 : f64
  %4 = "ttir.pow"(%six, %two) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %5 = "ttir.maximum"(%six, %two) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %6 = "ttir.minimum"(%5, %two) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  // CHECK-DAG: fill_value = -5.000000e-01 : f64
  %7 = "ttir.neg"(%2) : (tensor<1xf32>) -> tensor<1xf32>
  %8 = "ttir.abs"(%7) : (tensor<1xf32>) -> tensor<1xf32>
  %9 = "ttir.sqrt"(%2) : (tensor<1xf32>) -> tensor<1xf32>
  %10 = "ttir.neg"(%9) : (tensor<1xf32>) -> tensor<1xf32>
  %11 = "ttir.reciprocal"(%10) : (tensor<1xf32>) -> tensor<1xf32>
  // CHECK-DAG: fill_value = 5.000000e-01 : f64
  %12 = "ttir.rsqrt"(%2) : (tensor<1xf32>) -> tensor<1xf32>
  %13 = "ttir.multiply"(%12, %6) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %14 = "ttir.multiply"(%13, %12) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  // CHECK-NOT: ttir.{{add|subtract|multiply|divide|pow|maximum|minimum|neg|sqrt|rsqrt|reciprocal}}
  return %0, %1, %3, %4, %11, %14 : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
}

// -----

// A splat that is permuted, broadcast or sliced is still a splat. Ops that change nothing are removed.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<4x3xf32>, tensor<2x3xf32>) {
  %0 = "ttir.full"() {shape = array<i64: 2, 3>, fill_value = 1.5 : f64} : () -> tensor<2x3xf32>
  // CHECK-DAG: "ttir.full"() {{.*}} -> tensor<3x2xf32>
  %1 = "ttir.permute"(%0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  // CHECK-DAG: "ttir.full"() {{.*}} -> tensor<4x3xf32>
  %2 = "ttir.broadcast"(%0) {broadcast_dimensions = array<i64: 2, 1>} : (tensor<2x3xf32>) -> tensor<4x3xf32>
  %3 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0>, ends = array<i64: 2, 3>, step = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = "ttir.pad"(%3) {padding = array<i64: 0, 0, 0, 0>, value = 0.0 : f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = "ttir.broadcast"(%4) {broadcast_dimensions = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = "ttir.typecast"(%5) {dtype = f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %7 = "ttir.permute"(%6) {permutation = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: return {{.*}}, {{.*}}, %arg0
  return %1, %2, %7 : tensor<3x2xf32>, tensor<4x3xf32>, tensor<2x3xf32>
}

// -----

// x * 1, x / 1, x - 0 and x ** 1 are x; 1 / x, 0 - x and 1 ** x are not x.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  %one = "ttir.full"() {shape = array<i64: 1>, fill_value = 1.0 : f64} : () -> tensor<1xf32>
  %zero = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.0 : f64} : () -> tensor<1xf32>
  %0 = "ttir.multiply"(%x, %one) : (tensor<3xf32>, tensor<1xf32>) -> tensor<3xf32>
  %1 = "ttir.divide"(%0, %one) : (tensor<3xf32>, tensor<1xf32>) -> tensor<3xf32>
  %2 = "ttir.subtract"(%1, %zero) : (tensor<3xf32>, tensor<1xf32>) -> tensor<3xf32>
  %3 = "ttir.pow"(%2, %one) : (tensor<3xf32>, tensor<1xf32>) -> tensor<3xf32>
  // CHECK: [[Q:%[0-9]+]] = "ttir.divide"(%{{[0-9]+}}, %arg0)
  %4 = "ttir.divide"(%one, %x) : (tensor<1xf32>, tensor<3xf32>) -> tensor<3xf32>
  // CHECK: [[D:%[0-9]+]] = "ttir.subtract"(%{{[0-9]+}}, %arg0)
  %5 = "ttir.subtract"(%zero, %x) : (tensor<1xf32>, tensor<3xf32>) -> tensor<3xf32>
  // CHECK: [[P:%[0-9]+]] = "ttir.pow"(%{{[0-9]+}}, %arg0)
  %6 = "ttir.pow"(%one, %x) : (tensor<1xf32>, tensor<3xf32>) -> tensor<3xf32>
  // CHECK: return %arg0, [[Q]], [[D]], [[P]]
  return %3, %4, %5, %6 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}

// -----

// If x is an average of windows, x * c / c is x.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x16x2xf32>) -> (tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>) {
  // CHECK: [[A:%[0-9]+]] = "ttir.avg_pool2d"
  // CHECK: [[O:%[0-9]+]] = "ttir.divide"
  // CHECK: return [[A]], [[O]]
  %four = "ttir.full"() {shape = array<i64: 1>, fill_value = 4.0 : f64} : () -> tensor<1xf32>
  %three = "ttir.full"() {shape = array<i64: 1>, fill_value = 3.0 : f64} : () -> tensor<1xf32>
  %0 = "ttir.avg_pool2d"(%x) {batch_size = 1 : i64, input_height = 4 : i64, input_width = 4 : i64, channels = 2 : i64, kernel_size = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (tensor<1x1x16x2xf32>) -> tensor<1x1x4x2xf32>
  %1 = "ttir.multiply"(%0, %four) : (tensor<1x1x4x2xf32>, tensor<1xf32>) -> tensor<1x1x4x2xf32>
  %2 = "ttir.divide"(%1, %four) : (tensor<1x1x4x2xf32>, tensor<1xf32>) -> tensor<1x1x4x2xf32>
  %3 = "ttir.divide"(%1, %three) : (tensor<1x1x4x2xf32>, tensor<1xf32>) -> tensor<1x1x4x2xf32>
  return %2, %3 : tensor<1x1x4x2xf32>, tensor<1x1x4x2xf32>
}

// -----

// A reduction keeps its dimensions if a reshape adds them again with the size 1.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x2x3xf32>) -> (tensor<4x1x1xf32>, tensor<1x1x1xf32>) {
  // CHECK-NEXT: [[M:%[0-9]+]] = "ttir.max"(%arg0) {dim_arg = array<i64: 1, 2>, keep_dim = true}
  // CHECK-NEXT: [[S:%[0-9]+]] = "ttir.sum"(%arg0) {dim_arg = array<i64: 0, 1, 2>, keep_dim = true}
  // CHECK-NEXT: return [[M]], [[S]]
  %0 = "ttir.max"(%x) {dim_arg = array<i64: 1, 2>, keep_dim = false} : (tensor<4x2x3xf32>) -> tensor<4xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 4, 1, 1>} : (tensor<4xf32>) -> tensor<4x1x1xf32>
  %2 = "ttir.sum"(%x) {dim_arg = array<i64: 0, 1, 2>, keep_dim = false} : (tensor<4x2x3xf32>) -> tensor<f32>
  %3 = "ttir.reshape"(%2) {shape = array<i64: 1, 1, 1>} : (tensor<f32>) -> tensor<1x1x1xf32>
  return %1, %3 : tensor<4x1x1xf32>, tensor<1x1x1xf32>
}

// -----

// The reduction stays if the reshape gives another shape, or if another op reads the reduced tensor.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x3xf32>) -> (tensor<1x4xf32>, tensor<4x1xf32>, tensor<4xf32>) {
  // CHECK-NOT: keep_dim = true
  %0 = "ttir.max"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x3xf32>) -> tensor<4xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 1, 4>} : (tensor<4xf32>) -> tensor<1x4xf32>
  %2 = "ttir.min"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x3xf32>) -> tensor<4xf32>
  %3 = "ttir.reshape"(%2) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  return %1, %3, %2 : tensor<1x4xf32>, tensor<4x1xf32>, tensor<4xf32>
}

// -----

// The negation of an equality is an inequality, also for NaN. Other comparisons have no opposites.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>) {
  // CHECK: %[[A:.*]] = "ttir.eq"(%arg0, %arg1)
  // CHECK: %[[B:.*]] = "ttir.ne"(%arg0, %arg1)
  // CHECK: "ttir.lt"(%arg0, %arg1)
  // CHECK: %[[C:.*]] = "ttir.logical_not"
  // CHECK: return %[[A]], %[[B]], %[[C]]
  %0 = "ttir.ne"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xbf16>
  %1 = "ttir.logical_not"(%0) : (tensor<4xbf16>) -> tensor<4xbf16>
  %2 = "ttir.eq"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xbf16>
  %3 = "ttir.logical_not"(%2) : (tensor<4xbf16>) -> tensor<4xbf16>
  %4 = "ttir.lt"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xbf16>
  %5 = "ttir.logical_not"(%4) : (tensor<4xbf16>) -> tensor<4xbf16>
  return %1, %3, %5 : tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>
}
