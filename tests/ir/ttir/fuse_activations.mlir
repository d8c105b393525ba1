// RUN: %opt --step fuse %s | %check

// x / 2 * (1 + erf(x / sqrt(2))) is a gelu.
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

// x / 4 * (1 + erf(x / sqrt(2))) is no gelu.
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

// x * sigmoid(x), in either order, is a silu; y * sigmoid(x) is not.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) {
  // CHECK: [[S:%[0-9]+]] = "ttir.sigmoid"(%arg0)
  // CHECK: [[A:%[0-9]+]] = "ttir.silu"(%arg0)
  // CHECK: [[B:%[0-9]+]] = "ttir.silu"(%arg0)
  // CHECK: "ttir.multiply"(%arg1, [[S]])
  %0 = "ttir.sigmoid"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = "ttir.multiply"(%x, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %2 = "ttir.multiply"(%0, %x) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %3 = "ttir.multiply"(%y, %0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %1, %2, %3 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>
}
