// RUN: %opt --step fuse --expect-error %s | %check

func.func @main(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32> {
  // CHECK: error: ttir.scaled_dot_product_attention: got result tensor<2x4x6x6xf32>, expected tensor<2x4x6x8xf32>
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %k) {is_causal = false, scale = 0.5 : f32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x6xf32>
  return %0 : tensor<2x4x6x6xf32>
}
