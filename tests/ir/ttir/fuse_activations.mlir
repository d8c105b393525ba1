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

// -----

// 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))) is a gelu with tanh (GPT-2).
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK-NEXT: [[Y:%[0-9]+]] = "ttir.gelu_tanh"(%arg0)
  // CHECK-NEXT: return [[Y]]
  %half = "ttir.full"() {shape = array<i64>, fill_value = 0.5 : f64} : () -> tensor<f32>
  %one = "ttir.full"() {shape = array<i64>, fill_value = 1.0 : f64} : () -> tensor<f32>
  %three = "ttir.full"() {shape = array<i64>, fill_value = 3.0 : f64} : () -> tensor<f32>
  %cubic = "ttir.full"() {shape = array<i64>, fill_value = 0.044715 : f64} : () -> tensor<f32>
  %slope = "ttir.full"() {shape = array<i64>, fill_value = 0.79788456080286541 : f64} : () -> tensor<f32>
  %0 = "ttir.multiply"(%x, %half) : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %1 = "ttir.pow"(%x, %three) : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %2 = "ttir.multiply"(%1, %cubic) : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %3 = "ttir.add"(%x, %2) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = "ttir.multiply"(%3, %slope) : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %5 = "ttir.tanh"(%4) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %6 = "ttir.add"(%5, %one) : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %7 = "ttir.multiply"(%0, %6) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %7 : tensor<4x4xf32>
}

// -----

// The same with products in place of the power, in another order and in bfloat16 (Bloom).
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x4xbf16>) -> tensor<4x4xbf16> {
  // CHECK-NEXT: [[Y:%[0-9]+]] = "ttir.gelu_tanh"(%arg0)
  // CHECK-NEXT: return [[Y]]
  %half = "ttir.full"() {shape = array<i64>, fill_value = 0.5 : f64} : () -> tensor<bf16>
  %one = "ttir.full"() {shape = array<i64>, fill_value = 1.0 : f64} : () -> tensor<bf16>
  %cubic = "ttir.full"() {shape = array<i64>, fill_value = 0.044715 : f64} : () -> tensor<bf16>
  %slope = "ttir.full"() {shape = array<i64>, fill_value = 0.79788456 : f64} : () -> tensor<bf16>
  %0 = "ttir.multiply"(%x, %slope) : (tensor<4x4xbf16>, tensor<bf16>) -> tensor<4x4xbf16>
  %1 = "ttir.multiply"(%x, %cubic) : (tensor<4x4xbf16>, tensor<bf16>) -> tensor<4x4xbf16>
  %2 = "ttir.multiply"(%1, %x) : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %3 = "ttir.add"(%2, %one) : (tensor<4x4xbf16>, tensor<bf16>) -> tensor<4x4xbf16>
  %4 = "ttir.multiply"(%0, %3) : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %5 = "ttir.tanh"(%4) : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %6 = "ttir.add"(%5, %one) : (tensor<4x4xbf16>, tensor<bf16>) -> tensor<4x4xbf16>
  %7 = "ttir.multiply"(%6, %half) : (tensor<4x4xbf16>, tensor<bf16>) -> tensor<4x4xbf16>
  %8 = "ttir.multiply"(%x, %7) : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  return %8 : tensor<4x4xbf16>
}

// -----

// It is no gelu with another coefficient, a square, another tensor outside of tanh, or a tanh with another reader.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NOT: ttir.gelu
  %half = "ttir.full"() {shape = array<i64>, fill_value = 0.5 : f64} : () -> tensor<f32>
  %one = "ttir.full"() {shape = array<i64>, fill_value = 1.0 : f64} : () -> tensor<f32>
  %two = "ttir.full"() {shape = array<i64>, fill_value = 2.0 : f64} : () -> tensor<f32>
  %three = "ttir.full"() {shape = array<i64>, fill_value = 3.0 : f64} : () -> tensor<f32>
  %cubic = "ttir.full"() {shape = array<i64>, fill_value = 0.044715 : f64} : () -> tensor<f32>
  %other = "ttir.full"() {shape = array<i64>, fill_value = 0.0447 : f64} : () -> tensor<f32>
  %slope = "ttir.full"() {shape = array<i64>, fill_value = 0.79788456080286541 : f64} : () -> tensor<f32>
  %a0 = "ttir.multiply"(%x, %half) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %a1 = "ttir.pow"(%x, %three) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %a2 = "ttir.multiply"(%a1, %other) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %a3 = "ttir.add"(%x, %a2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a4 = "ttir.multiply"(%a3, %slope) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %a5 = "ttir.tanh"(%a4) : (tensor<4xf32>) -> tensor<4xf32>
  %a6 = "ttir.add"(%a5, %one) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %a7 = "ttir.multiply"(%a0, %a6) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b0 = "ttir.multiply"(%x, %half) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b1 = "ttir.pow"(%x, %two) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b2 = "ttir.multiply"(%b1, %cubic) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b3 = "ttir.add"(%x, %b2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b4 = "ttir.multiply"(%b3, %slope) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b5 = "ttir.tanh"(%b4) : (tensor<4xf32>) -> tensor<4xf32>
  %b6 = "ttir.add"(%b5, %one) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b7 = "ttir.multiply"(%b0, %b6) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c0 = "ttir.multiply"(%y, %half) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %c1 = "ttir.pow"(%x, %three) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %c2 = "ttir.multiply"(%c1, %cubic) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %c3 = "ttir.add"(%x, %c2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %c4 = "ttir.multiply"(%c3, %slope) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %c5 = "ttir.tanh"(%c4) : (tensor<4xf32>) -> tensor<4xf32>
  %c6 = "ttir.add"(%c5, %one) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %c7 = "ttir.multiply"(%c0, %c6) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d0 = "ttir.multiply"(%y, %half) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %d1 = "ttir.pow"(%y, %three) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %d2 = "ttir.multiply"(%d1, %cubic) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %d3 = "ttir.add"(%y, %d2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d4 = "ttir.multiply"(%d3, %slope) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %d5 = "ttir.tanh"(%d4) : (tensor<4xf32>) -> tensor<4xf32>
  %d6 = "ttir.add"(%d5, %one) : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %d7 = "ttir.multiply"(%d0, %d6) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %a7, %b7, %c7, %d7, %d5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
