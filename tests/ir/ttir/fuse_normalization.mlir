// RUN: %opt --step fuse %s | %check

// exp(x - max) / sum
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

// A layer norm with weight and bias.
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

// A variance over the other axis.
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

// A factor that enlarges the result is no weight.
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

// x / 2 * (1 + erf(x / sqrt(2)))
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK-NEXT: "ttir.gelu"(%arg0)
  %half = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.5 : f64} : () -> tensor<1xf32>
  %one = "ttir.full"() {shape = array<i64: 1>, fill_value = 1.0 : f64} : () -> tensor<1xf32>
  %root = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.70710678 : f64} : () -> tensor<1xf32>
  %0 = "ttir.multiply"(%x, %root) : (tensor<4x4xf32>, tensor<1xf32>) -> tensor<4x4xf32>
  %1 = "ttir.erf"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "ttir.add"(%1, %one) : (tensor<4x4xf32>, tensor<1xf32>) -> tensor<4x4xf32>
  %3 = "ttir.multiply"(%x, %half) : (tensor<4x4xf32>, tensor<1xf32>) -> tensor<4x4xf32>
  %4 = "ttir.multiply"(%3, %2) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}

// -----

// Not half of it.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK-NOT: ttir.gelu
  %half = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.25 : f64} : () -> tensor<1xf32>
  %one = "ttir.full"() {shape = array<i64: 1>, fill_value = 1.0 : f64} : () -> tensor<1xf32>
  %root = "ttir.full"() {shape = array<i64: 1>, fill_value = 0.70710678 : f64} : () -> tensor<1xf32>
  %0 = "ttir.multiply"(%x, %root) : (tensor<4x4xf32>, tensor<1xf32>) -> tensor<4x4xf32>
  %1 = "ttir.erf"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = "ttir.add"(%1, %one) : (tensor<4x4xf32>, tensor<1xf32>) -> tensor<4x4xf32>
  %3 = "ttir.multiply"(%x, %half) : (tensor<4x4xf32>, tensor<1xf32>) -> tensor<4x4xf32>
  %4 = "ttir.multiply"(%3, %2) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}

// -----

// Integers have no mean.
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

// A sum over n is a mean if n were summed.
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
