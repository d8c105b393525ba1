// RUN: %opt --step expand-attention %s | %check

// The library has an op for attention of bf16 to pages that are whole tiles.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x3x4x64xbf16>, %k: tensor<9x2x32x64xbf16>, %v: tensor<9x2x32x64xbf16>, %t: tensor<3x2xi32>, %last: tensor<3xi32>) -> tensor<1x3x4x64xbf16> {
  // CHECK-NEXT: "ttir.paged_scaled_dot_product_attention_decode"(%arg0, %arg1, %arg2, %arg3, %arg4)
  %0 = "ttir.paged_scaled_dot_product_attention_decode"(%q, %k, %v, %t, %last) {is_causal = true, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>} : (tensor<1x3x4x64xbf16>, tensor<9x2x32x64xbf16>, tensor<9x2x32x64xbf16>, tensor<3x2xi32>, tensor<3xi32>) -> tensor<1x3x4x64xbf16>
  return %0 : tensor<1x3x4x64xbf16>
}

// -----

// The library has no such op for float32.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x3x4x64xf32>, %k: tensor<9x2x32x64xf32>, %v: tensor<9x2x32x64xf32>, %t: tensor<3x2xi32>, %last: tensor<3xi32>) -> tensor<1x3x4x64xf32> {
  // CHECK-NOT: paged
  // CHECK: "ttir.embedding"
  // CHECK: "ttir.scaled_dot_product_attention"
  %0 = "ttir.paged_scaled_dot_product_attention_decode"(%q, %k, %v, %t, %last) {is_causal = true, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>} : (tensor<1x3x4x64xf32>, tensor<9x2x32x64xf32>, tensor<9x2x32x64xf32>, tensor<3x2xi32>, tensor<3xi32>) -> tensor<1x3x4x64xf32>
  return %0 : tensor<1x3x4x64xf32>
}

// -----

// The library takes no pages that are not whole tiles.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x3x4x64xbf16>, %k: tensor<9x2x16x64xbf16>, %v: tensor<9x2x16x64xbf16>, %t: tensor<3x2xi32>, %last: tensor<3xi32>) -> tensor<1x3x4x64xbf16> {
  // CHECK-NOT: paged
  // CHECK: "ttir.embedding"
  // CHECK: "ttir.scaled_dot_product_attention"
  %0 = "ttir.paged_scaled_dot_product_attention_decode"(%q, %k, %v, %t, %last) {is_causal = true, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>} : (tensor<1x3x4x64xbf16>, tensor<9x2x16x64xbf16>, tensor<9x2x16x64xbf16>, tensor<3x2xi32>, tensor<3xi32>) -> tensor<1x3x4x64xbf16>
  return %0 : tensor<1x3x4x64xbf16>
}

// -----

// The library takes no heads that are not whole tiles.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x3x4x40xbf16>, %k: tensor<9x2x32x40xbf16>, %v: tensor<9x2x32x40xbf16>, %t: tensor<3x2xi32>, %last: tensor<3xi32>) -> tensor<1x3x4x40xbf16> {
  // CHECK-NOT: paged
  // CHECK: "ttir.embedding"
  // CHECK: "ttir.scaled_dot_product_attention"
  %0 = "ttir.paged_scaled_dot_product_attention_decode"(%q, %k, %v, %t, %last) {is_causal = true, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>} : (tensor<1x3x4x40xbf16>, tensor<9x2x32x40xbf16>, tensor<9x2x32x40xbf16>, tensor<3x2xi32>, tensor<3xi32>) -> tensor<1x3x4x40xbf16>
  return %0 : tensor<1x3x4x40xbf16>
}

// -----

// A mask cannot keep the library from reading a page that a user does not have.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x3x4x64xbf16>, %k: tensor<9x2x32x64xbf16>, %v: tensor<9x2x32x64xbf16>, %t: tensor<3x2xi32>, %last: tensor<3x1x4x64xbf16>) -> tensor<1x3x4x64xbf16> {
  // CHECK-NOT: paged
  // CHECK: "ttir.embedding"
  // CHECK: "ttir.scaled_dot_product_attention"
  %0 = "ttir.paged_scaled_dot_product_attention_decode"(%q, %k, %v, %t, %last) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>} : (tensor<1x3x4x64xbf16>, tensor<9x2x32x64xbf16>, tensor<9x2x32x64xbf16>, tensor<3x2xi32>, tensor<3x1x4x64xbf16>) -> tensor<1x3x4x64xbf16>
  return %0 : tensor<1x3x4x64xbf16>
}
