// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// CHECK: error: stablehlo.custom_call is not supported in stage stablehlo-to-ttir
// CHECK: @unheard_of
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.custom_call @unheard_of(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// CHECK: error: stablehlo.custom_call is not supported in stage stablehlo-to-ttir
// CHECK: expected a mark that leaves the shape as it is, as on one device
func.func @main(%x: tensor<2x4xf32>) -> tensor<1x4xf32> {
  %0 = stablehlo.custom_call @SPMDFullToShardShape(%x) {mhlo.sharding = "{manual}"} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}

// -----

// CHECK: error: stablehlo.custom_call is not supported in stage stablehlo-to-ttir
// CHECK: expected tt.fill_cache with batch_offset among its attributes
func.func @main(%cache: tensor<4x2x8x3xf32>, %x: tensor<1x2x5x3xf32>) -> tensor<4x2x8x3xf32> {
  %0 = stablehlo.custom_call @tt.fill_cache(%cache, %x) : (tensor<4x2x8x3xf32>, tensor<1x2x5x3xf32>) -> tensor<4x2x8x3xf32>
  return %0 : tensor<4x2x8x3xf32>
}

// -----

// A sliding window without a causal mask would also reach into the future.
// CHECK: error: stablehlo.custom_call is not supported in stage stablehlo-to-ttir
func.func @main(%q: tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32> {
  %0 = stablehlo.custom_call @tt.scaled_dot_product_attention(%q, %q, %q)
    {mhlo.frontend_attributes = {is_causal = "False", sliding_window_size = "3"}}
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  return %0 : tensor<1x2x8x4xf32>
}

// -----

// If there are a mask and a sink, attributes must say so.
// CHECK: error: stablehlo.custom_call is not supported in stage stablehlo-to-ttir
// CHECK: expected tt.scaled_dot_product_attention with has_attention_mask, has_attention_sink and the like
func.func @main(%q: tensor<1x2x8x4xf32>, %m: tensor<1x1x8x8xf32>, %s: tensor<2xf32>) -> tensor<1x2x8x4xf32> {
  %0 = stablehlo.custom_call @tt.scaled_dot_product_attention(%q, %q, %q, %m, %s)
    {mhlo.frontend_attributes = {is_causal = "False"}}
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x1x8x8xf32>, tensor<2xf32>) -> tensor<1x2x8x4xf32>
  return %0 : tensor<1x2x8x4xf32>
}

// -----

// If an attribute says that there is a mask, the mask must be an operand.
// CHECK: error: stablehlo.custom_call is not supported in stage stablehlo-to-ttir
// CHECK: expected tt.scaled_dot_product_attention with has_attention_mask, has_attention_sink and the like
func.func @main(%q: tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32> {
  %0 = stablehlo.custom_call @tt.scaled_dot_product_attention(%q, %q, %q)
    {mhlo.frontend_attributes = {is_causal = "False", has_attention_mask = "True"}}
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  return %0 : tensor<1x2x8x4xf32>
}

// -----

// A weight must be marked with a data type that weights can have.
// CHECK: error: stablehlo.custom_call is not supported in stage stablehlo-to-ttir
// CHECK: expected ttcore.weight_dtype of bf16, bfp_bf8, bfp_bf4
func.func @main(%w: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = stablehlo.custom_call @tt.weight_dtype_override(%w) {mhlo.frontend_attributes = {ttcore.weight_dtype = "f8"}}
    : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
