// RUN: %opt --step fuse %s | %check

// exp(x - max) / sum is a softmax.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK-NEXT: "ttir.softmax"(%arg0) {dimension = 1 : i64
  // CHECK-NEXT: return
  %0 = "ttir.max"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = "ttir.subtract"(%x, %1) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %3 = "ttir.exp"(%2) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "ttir.sum"(%3) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %5 = "ttir.reshape"(%4) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %6 = "ttir.divide"(%3, %5) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  return %6 : tensor<4x4xf32>
}

// -----

// Column i of a square matrix divided by the sum of row i is no softmax.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK-NOT: ttir.softmax
  %0 = "ttir.max"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = "ttir.subtract"(%x, %1) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %3 = "ttir.exp"(%2) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "ttir.sum"(%3) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %5 = "ttir.reshape"(%4) {shape = array<i64: 1, 4>} : (tensor<4xf32>) -> tensor<1x4xf32>
  %6 = "ttir.divide"(%3, %5) : (tensor<4x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  return %6 : tensor<4x4xf32>
}

// -----

// The ops of a layer norm with weight and bias are fused.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4x4xf32> {
  // CHECK: "ttir.layer_norm"(%arg0, %arg1, %arg2) {epsilon = 9.99
  // CHECK-NEXT: return
  %n = "ttir.full"() {shape = array<i64: 1>, fill_value = 4.0 : f64} : () -> tensor<1xf32>
  %e = "ttir.full"() {shape = array<i64: 1>, fill_value = 1.0e-5 : f64} : () -> tensor<1xf32>
  %0 = "ttir.sum"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = "ttir.divide"(%1, %n) : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  %3 = "ttir.subtract"(%x, %2) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %4 = "ttir.multiply"(%3, %3) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = "ttir.sum"(%4) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %6 = "ttir.reshape"(%5) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %7 = "ttir.divide"(%6, %n) : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  %8 = "ttir.add"(%7, %e) : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  %9 = "ttir.rsqrt"(%8) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %10 = "ttir.multiply"(%3, %9) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %11 = "ttir.multiply"(%10, %w) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %12 = "ttir.add"(%11, %b) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  return %12 : tensor<4x4xf32>
}

// -----

// With the variance over the other axis, it is no layer norm.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK-NOT: ttir.layer_norm
  %n = "ttir.full"() {shape = array<i64: 1>, fill_value = 4.0 : f64} : () -> tensor<1xf32>
  %e = "ttir.full"() {shape = array<i64: 1>, fill_value = 1.0e-5 : f64} : () -> tensor<1xf32>
  %0 = "ttir.sum"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = "ttir.divide"(%1, %n) : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  %3 = "ttir.subtract"(%x, %2) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %4 = "ttir.multiply"(%3, %3) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = "ttir.sum"(%4) {dim_arg = array<i64: 0>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %6 = "ttir.reshape"(%5) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %7 = "ttir.divide"(%6, %n) : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  %8 = "ttir.add"(%7, %e) : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  %9 = "ttir.rsqrt"(%8) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %10 = "ttir.multiply"(%3, %9) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  return %10 : tensor<4x4xf32>
}

// -----

// A factor that broadcasts the result is no weight.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xf32>) -> tensor<2x4x4xf32> {
  // CHECK: "ttir.layer_norm"(%arg0) {epsilon
  // CHECK: "ttir.multiply"
  %n = "ttir.full"() {shape = array<i64: 1>, fill_value = 4.0 : f64} : () -> tensor<1xf32>
  %e = "ttir.full"() {shape = array<i64: 1>, fill_value = 1.0e-5 : f64} : () -> tensor<1xf32>
  %0 = "ttir.sum"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = "ttir.divide"(%1, %n) : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  %3 = "ttir.subtract"(%x, %2) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %4 = "ttir.multiply"(%3, %3) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = "ttir.sum"(%4) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %6 = "ttir.reshape"(%5) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %7 = "ttir.divide"(%6, %n) : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  %8 = "ttir.add"(%7, %e) : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  %9 = "ttir.rsqrt"(%8) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %10 = "ttir.multiply"(%3, %9) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %11 = "ttir.full"() {shape = array<i64: 2, 4, 4>, fill_value = 2.0 : f64} : () -> tensor<2x4x4xf32>
  %12 = "ttir.multiply"(%11, %10) : (tensor<2x4x4xf32>, tensor<4x4xf32>) -> tensor<2x4x4xf32>
  return %12 : tensor<2x4x4xf32>
}

// -----

// A mean of integers is not fused.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xi32>) -> tensor<4xi32> {
  // CHECK: "ttir.sum"
  // CHECK: "ttir.divide"
  %n = "ttir.full"() {shape = array<i64: 1>, fill_value = 4 : i64} : () -> tensor<1xi32>
  %0 = "ttir.sum"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x4xi32>) -> tensor<4xi32>
  %1 = "ttir.divide"(%0, %n) : (tensor<4xi32>, tensor<1xi32>) -> tensor<4xi32>
  return %1 : tensor<4xi32>
}

// -----

// A sum divided by n is a mean if it has n elements.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-DAG: "ttir.mean"(%arg0) {dim_arg = array<i64: 1>
  // CHECK-DAG: "ttir.sum"(%arg0) {dim_arg = array<i64: 0>
  %n = "ttir.full"() {shape = array<i64: 1>, fill_value = 4.0 : f64} : () -> tensor<1xf32>
  %m = "ttir.full"() {shape = array<i64: 1>, fill_value = 3.0 : f64} : () -> tensor<1xf32>
  %0 = "ttir.sum"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %1 = "ttir.divide"(%0, %n) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %2 = "ttir.sum"(%x) {dim_arg = array<i64: 0>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %3 = "ttir.divide"(%2, %m) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK-NEXT: "ttir.silu"(%arg0)
  %0 = "ttir.sigmoid"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "ttir.multiply"(%0, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// -----

// A sum times a factor is a mean, here with a third in float32. A reshape may restore the dimension before the factor.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x3xf32>) -> (tensor<4xf32>, tensor<4x1xf32>) {
  // CHECK-DAG: "ttir.mean"(%arg0) {dim_arg = array<i64: 1>, keep_dim = false}
  // CHECK-NOT: ttir.sum
  %third = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.3333333432674408 : f64} : () -> tensor<1xf32>
  %three = "ttir.full"() {shape = array<i64: 1>, fill_value = 3.0 : f64} : () -> tensor<1xf32>
  %0 = "ttir.sum"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x3xf32>) -> tensor<4xf32>
  %1 = "ttir.multiply"(%0, %third) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %2 = "ttir.reshape"(%0) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %3 = "ttir.divide"(%2, %three) : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  return %1, %3 : tensor<4xf32>, tensor<4x1xf32>
}

// -----

// A sum is no mean if it is divided by another number, if the division broadcasts it, or if it is a sum of integers.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x3xf32>, %n: tensor<4x3xi32>) -> (tensor<4xf32>, tensor<2x4xf32>, tensor<4xi32>) {
  // CHECK-NOT: ttir.mean
  %two = "ttir.full"() {shape = array<i64: 1>, fill_value = 2.0 : f64} : () -> tensor<1xf32>
  %threes = "ttir.full"() {shape = array<i64: 2, 1>, fill_value = 3.0 : f64} : () -> tensor<2x1xf32>
  %three = "ttir.full"() {shape = array<i64: 1>, fill_value = 3 : i64} : () -> tensor<1xi32>
  %0 = "ttir.sum"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x3xf32>) -> tensor<4xf32>
  %1 = "ttir.divide"(%0, %two) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %2 = "ttir.divide"(%0, %threes) : (tensor<4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  %3 = "ttir.sum"(%n) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x3xi32>) -> tensor<4xi32>
  %4 = "ttir.divide"(%3, %three) : (tensor<4xi32>, tensor<1xi32>) -> tensor<4xi32>
  return %1, %2, %4 : tensor<4xf32>, tensor<2x4xf32>, tensor<4xi32>
}

// -----

// A layer norm takes no weight after its bias, and only one bias. A column is not its weight.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4x1xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK: [[N:%[0-9]+]] = "ttir.layer_norm"(%arg0, %arg1, %arg2)
  // CHECK: [[M:%[0-9]+]] = "ttir.multiply"([[N]], %arg1)
  // CHECK: "ttir.add"([[M]], %arg2)
  // CHECK: [[P:%[0-9]+]] = "ttir.layer_norm"(%arg0) {epsilon
  // CHECK: "ttir.multiply"([[P]], %arg3)
  %0 = "ttir.layer_norm"(%x) {epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "ttir.multiply"(%w, %0) : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "ttir.add"(%1, %b) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %3 = "ttir.multiply"(%2, %w) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %4 = "ttir.add"(%3, %b) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %5 = "ttir.layer_norm"(%x) {epsilon = 1.0e-4 : f32, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = "ttir.multiply"(%5, %c) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  return %4, %6 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// x * rsqrt(mean(x ** 2) + epsilon) is an RMS norm, with a power or a product for the square, and with a vector or not.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x4xf32>, %w: tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  // CHECK-DAG: "ttir.rms_norm"(%arg0, %arg1) {epsilon = 9.99
  // CHECK-DAG: "ttir.rms_norm"(%arg0) {epsilon = 2.5
  // CHECK-NOT: ttir.multiply
  // CHECK: return
  %two = "ttir.full"() {shape = array<i64>, fill_value = 2.0 : f64} : () -> tensor<f32>
  %e = "ttir.full"() {shape = array<i64: 1, 1>, fill_value = 1.0e-5 : f64} : () -> tensor<1x1xf32>
  %q = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.25 : f64} : () -> tensor<1xf32>
  %0 = "ttir.pow"(%x, %two) : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
  %1 = "ttir.mean"(%0) {dim_arg = array<i64: 2>, keep_dim = false} : (tensor<2x3x4xf32>) -> tensor<2x3xf32>
  %2 = "ttir.add"(%1, %e) : (tensor<2x3xf32>, tensor<1x1xf32>) -> tensor<2x3xf32>
  %3 = "ttir.rsqrt"(%2) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = "ttir.reshape"(%3) {shape = array<i64: 2, 3, 1>} : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %5 = "ttir.multiply"(%x, %4) : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %6 = "ttir.multiply"(%w, %5) : (tensor<4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %7 = "ttir.multiply"(%x, %x) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %8 = "ttir.mean"(%7) {dim_arg = array<i64: 2>, keep_dim = true} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
  %9 = "ttir.add"(%8, %q) : (tensor<2x3x1xf32>, tensor<1xf32>) -> tensor<2x3x1xf32>
  %10 = "ttir.rsqrt"(%9) : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %11 = "ttir.multiply"(%10, %x) : (tensor<2x3x1xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %6, %11 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// -----

// It is no RMS norm of another tensor, of a third power, over the first dimension, or if norms of rows scale columns.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK-NOT: ttir.rms_norm
  %three = "ttir.full"() {shape = array<i64: 1>, fill_value = 3.0 : f64} : () -> tensor<1xf32>
  %e = "ttir.full"() {shape = array<i64: 1>, fill_value = 1.0e-5 : f64} : () -> tensor<1xf32>
  %0 = "ttir.multiply"(%x, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "ttir.mean"(%0) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %2 = "ttir.add"(%1, %e) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %3 = "ttir.rsqrt"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "ttir.reshape"(%3) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %5 = "ttir.multiply"(%y, %4) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %6 = "ttir.reshape"(%3) {shape = array<i64: 1, 4>} : (tensor<4xf32>) -> tensor<1x4xf32>
  %7 = "ttir.multiply"(%x, %6) : (tensor<4x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  %8 = "ttir.pow"(%x, %three) : (tensor<4x4xf32>, tensor<1xf32>) -> tensor<4x4xf32>
  %9 = "ttir.mean"(%8) {dim_arg = array<i64: 1>, keep_dim = true} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %10 = "ttir.add"(%9, %e) : (tensor<4x1xf32>, tensor<1xf32>) -> tensor<4x1xf32>
  %11 = "ttir.rsqrt"(%10) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %12 = "ttir.multiply"(%x, %11) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %13 = "ttir.mean"(%0) {dim_arg = array<i64: 0>, keep_dim = false} : (tensor<4x4xf32>) -> tensor<4xf32>
  %14 = "ttir.add"(%13, %e) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %15 = "ttir.rsqrt"(%14) : (tensor<4xf32>) -> tensor<4xf32>
  %16 = "ttir.reshape"(%15) {shape = array<i64: 4, 1>} : (tensor<4xf32>) -> tensor<4x1xf32>
  %17 = "ttir.multiply"(%x, %16) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  return %5, %7, %12, %17 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// An RMS norm has no bias, and a column is not its weight.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xf32>, %v: tensor<4xf32>, %c: tensor<4x1xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK: [[N:%[0-9]+]] = "ttir.rms_norm"(%arg0) {epsilon
  // CHECK: "ttir.add"([[N]], %arg1)
  // CHECK: "ttir.multiply"([[N]], %arg2)
  %0 = "ttir.rms_norm"(%x) {epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "ttir.add"(%0, %v) : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4x4xf32>
  %2 = "ttir.multiply"(%0, %c) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  return %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// The RMS norm of bfloat16 as float32, rounded before the weight (Llama).
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xbf16>, %w: tensor<16xbf16>) -> tensor<2x6x16xbf16> {
  // CHECK-NEXT: "ttir.rms_norm"(%arg0, %arg1) {{.*}} -> tensor<2x6x16xbf16>
  // CHECK-NEXT: return
  %0 = "ttir.typecast"(%x) {dtype = f32} : (tensor<2x6x16xbf16>) -> tensor<2x6x16xf32>
  %1 = "ttir.rms_norm"(%0) {epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0>} : (tensor<2x6x16xf32>) -> tensor<2x6x16xf32>
  %2 = "ttir.typecast"(%1) {dtype = bf16} : (tensor<2x6x16xf32>) -> tensor<2x6x16xbf16>
  %3 = "ttir.multiply"(%w, %2) : (tensor<16xbf16>, tensor<2x6x16xbf16>) -> tensor<2x6x16xbf16>
  return %3 : tensor<2x6x16xbf16>
}

// -----

// The same with a weight in float32, and rounded after the weight (Gemma). The weight stays in float32.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xbf16>, %w: tensor<16xf32>) -> tensor<2x6x16xbf16> {
  // CHECK-NEXT: "ttir.rms_norm"(%arg0, %arg1) {{.*}} : (tensor<2x6x16xbf16>, tensor<16xf32>) -> tensor<2x6x16xbf16>
  // CHECK-NEXT: return
  %0 = "ttir.typecast"(%x) {dtype = f32} : (tensor<2x6x16xbf16>) -> tensor<2x6x16xf32>
  %1 = "ttir.rms_norm"(%0) {epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0>} : (tensor<2x6x16xf32>) -> tensor<2x6x16xf32>
  %2 = "ttir.multiply"(%1, %w) : (tensor<2x6x16xf32>, tensor<16xf32>) -> tensor<2x6x16xf32>
  %3 = "ttir.typecast"(%2) {dtype = bf16} : (tensor<2x6x16xf32>) -> tensor<2x6x16xbf16>
  return %3 : tensor<2x6x16xbf16>
}

// -----

// The float32 result of the norm has another reader.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xbf16>) -> (tensor<2x6x16xbf16>, tensor<2x6x16xf32>) {
  // CHECK: ttir.typecast
  // CHECK: "ttir.rms_norm"({{%[0-9]+}}) {{.*}}xf32>
  // CHECK: ttir.typecast
  %0 = "ttir.typecast"(%x) {dtype = f32} : (tensor<2x6x16xbf16>) -> tensor<2x6x16xf32>
  %1 = "ttir.rms_norm"(%0) {epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0>} : (tensor<2x6x16xf32>) -> tensor<2x6x16xf32>
  %2 = "ttir.typecast"(%1) {dtype = bf16} : (tensor<2x6x16xf32>) -> tensor<2x6x16xbf16>
  return %2, %1 : tensor<2x6x16xbf16>, tensor<2x6x16xf32>
}

// -----

// A norm of float32 stays, and only its result is rounded: its operand may have more digits than bfloat16.
// CHECK-LABEL: @main(
func.func @main(%0: tensor<2x6x16xf32>) -> tensor<2x6x16xbf16> {
  // CHECK-NEXT: "ttir.rms_norm"(%arg0) {{.*}}xf32>
  // CHECK-NEXT: ttir.typecast
  %1 = "ttir.rms_norm"(%0) {epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0>} : (tensor<2x6x16xf32>) -> tensor<2x6x16xf32>
  %2 = "ttir.typecast"(%1) {dtype = bf16} : (tensor<2x6x16xf32>) -> tensor<2x6x16xbf16>
  return %2 : tensor<2x6x16xbf16>
}

// -----

// A norm of integers stays in float32.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x16xi32>) -> tensor<2x6x16xi32> {
  // CHECK: ttir.typecast
  // CHECK: "ttir.rms_norm"({{%[0-9]+}}) {{.*}}xf32>
  // CHECK: ttir.typecast
  %0 = "ttir.typecast"(%x) {dtype = f32} : (tensor<2x6x16xi32>) -> tensor<2x6x16xf32>
  %1 = "ttir.rms_norm"(%0) {epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0>} : (tensor<2x6x16xf32>) -> tensor<2x6x16xf32>
  %2 = "ttir.typecast"(%1) {dtype = i32} : (tensor<2x6x16xf32>) -> tensor<2x6x16xi32>
  return %2 : tensor<2x6x16xi32>
}

// -----

// A reshape is between the cast and the norm (Qwen3, for each head).
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x32xbf16>) -> tensor<2x6x2x16xbf16> {
  // CHECK-NEXT: [[X:%[0-9]+]] = "ttir.reshape"(%arg0) {{.*}} -> tensor<2x6x2x16xbf16>
  // CHECK-NEXT: "ttir.rms_norm"([[X]]) {{.*}} -> tensor<2x6x2x16xbf16>
  // CHECK-NEXT: return
  %0 = "ttir.typecast"(%x) {dtype = f32} : (tensor<2x6x32xbf16>) -> tensor<2x6x32xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 2, 6, 2, 16>} : (tensor<2x6x32xf32>) -> tensor<2x6x2x16xf32>
  %2 = "ttir.rms_norm"(%1) {epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0>} : (tensor<2x6x2x16xf32>) -> tensor<2x6x2x16xf32>
  %3 = "ttir.typecast"(%2) {dtype = bf16} : (tensor<2x6x2x16xf32>) -> tensor<2x6x2x16xbf16>
  return %3 : tensor<2x6x2x16xbf16>
}

// -----

// The heads are moved between the cast and the norm (Gemma 3).
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x32xbf16>, %w: tensor<16xf32>) -> tensor<2x2x6x16xbf16> {
  // CHECK-NEXT: [[X:%[0-9]+]] = "ttir.reshape"(%arg0) {{.*}} -> tensor<2x6x2x16xbf16>
  // CHECK-NEXT: [[Y:%[0-9]+]] = "ttir.permute"([[X]]) {{.*}} -> tensor<2x2x6x16xbf16>
  // CHECK-NEXT: "ttir.rms_norm"([[Y]], %arg1) {{.*}} -> tensor<2x2x6x16xbf16>
  // CHECK-NEXT: return
  %0 = "ttir.typecast"(%x) {dtype = f32} : (tensor<2x6x32xbf16>) -> tensor<2x6x32xf32>
  %1 = "ttir.reshape"(%0) {shape = array<i64: 2, 6, 2, 16>} : (tensor<2x6x32xf32>) -> tensor<2x6x2x16xf32>
  %2 = "ttir.permute"(%1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x16xf32>) -> tensor<2x2x6x16xf32>
  %3 = "ttir.rms_norm"(%2, %w) {epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1>} : (tensor<2x2x6x16xf32>, tensor<16xf32>) -> tensor<2x2x6x16xf32>
  %4 = "ttir.typecast"(%3) {dtype = bf16} : (tensor<2x2x6x16xf32>) -> tensor<2x2x6x16xbf16>
  return %4 : tensor<2x2x6x16xbf16>
}

// -----

// An addition between the cast and the norm is computed in float32, so it stays.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x32xbf16>, %y: tensor<2x6x32xf32>) -> tensor<2x2x6x16xbf16> {
  // CHECK: "ttir.add"({{.*}}xf32>
  // CHECK: "ttir.rms_norm"({{.*}} -> tensor<2x2x6x16xf32>
  %0 = "ttir.typecast"(%x) {dtype = f32} : (tensor<2x6x32xbf16>) -> tensor<2x6x32xf32>
  %1 = "ttir.add"(%0, %y) : (tensor<2x6x32xf32>, tensor<2x6x32xf32>) -> tensor<2x6x32xf32>
  %2 = "ttir.reshape"(%1) {shape = array<i64: 2, 6, 2, 16>} : (tensor<2x6x32xf32>) -> tensor<2x6x2x16xf32>
  %3 = "ttir.permute"(%2) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x16xf32>) -> tensor<2x2x6x16xf32>
  %4 = "ttir.rms_norm"(%3) {epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 0>} : (tensor<2x2x6x16xf32>) -> tensor<2x2x6x16xf32>
  %5 = "ttir.typecast"(%4) {dtype = bf16} : (tensor<2x2x6x16xf32>) -> tensor<2x2x6x16xbf16>
  return %5 : tensor<2x2x6x16xbf16>
}
