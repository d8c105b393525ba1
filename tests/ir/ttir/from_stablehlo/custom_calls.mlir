// RUN: %opt --step stablehlo-to-ttir %s | %check

// A call that only marks a value is replaced by the value.
// CHECK-LABEL: @main(
// CHECK: %[[ERF:.*]] = "ttir.erf"(%arg0)
// CHECK: "ttir.asinh"(%[[ERF]])
// CHECK-NOT: stablehlo
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.custom_call @tt.mark_argument(%0) {mhlo.frontend_attributes = {ttcore.argument_type = "input"}}
    : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = stablehlo.custom_call @mhlo.erf(%1) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = stablehlo.custom_call @mhlo.asinh(%2) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  stablehlo.custom_call @xla.sdy.ShardingGroup(%3) {has_side_effect = true} : (tensor<2x4xf32>) -> ()
  return %3 : tensor<2x4xf32>
}

// -----

// Rows in the middle of the cache's batch get new first positions.
// CHECK-LABEL: @main(
// CHECK: "ttir.fill_cache"(%arg0, %arg1) {batch_offset = 1 : i64}
func.func @main(%cache: tensor<4x2x8x3xf32>, %x: tensor<1x2x5x3xf32>) -> tensor<4x2x8x3xf32> {
  %0 = stablehlo.custom_call @tt.fill_cache(%cache, %x) {mhlo.frontend_attributes = {batch_offset = "1"}}
    : (tensor<4x2x8x3xf32>, tensor<1x2x5x3xf32>) -> tensor<4x2x8x3xf32>
  return %0 : tensor<4x2x8x3xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: "ttir.update_cache"(%arg0, %arg1, %arg2) {batch_offset = 0 : i64}
func.func @main(%cache: tensor<1x2x8x3xf32>, %x: tensor<1x2x1x3xf32>, %i: tensor<1xi32>) -> tensor<1x2x8x3xf32> {
  %0 = stablehlo.custom_call @tt.update_cache(%cache, %x, %i) {mhlo.frontend_attributes = {batch_offset = "0"}}
    : (tensor<1x2x8x3xf32>, tensor<1x2x1x3xf32>, tensor<1xi32>) -> tensor<1x2x8x3xf32>
  return %0 : tensor<1x2x8x3xf32>
}

// -----

// The input has a row per user, in the form that tt-xla's front-end writes for several users.
// CHECK-LABEL: @main(
// CHECK: %[[ROWS:.*]] = "ttir.permute"(%arg1) {permutation = array<i64: 2, 1, 0, 3>}
// CHECK: "ttir.update_cache"(%arg0, %[[ROWS]], %arg2) {batch_offset = 1 : i64}
func.func @main(%cache: tensor<4x2x8x3xf32>, %x: tensor<3x2x1x3xf32>, %i: tensor<1xi32>) -> tensor<4x2x8x3xf32> {
  %0 = stablehlo.custom_call @tt.update_cache(%cache, %x, %i) {mhlo.frontend_attributes = {batch_offset = "1"}}
    : (tensor<4x2x8x3xf32>, tensor<3x2x1x3xf32>, tensor<1xi32>) -> tensor<4x2x8x3xf32>
  return %0 : tensor<4x2x8x3xf32>
}

// -----

// Only the first heads of the input belong to the cache.
// CHECK-LABEL: @main(
// CHECK: %[[HEADS:.*]] = "ttir.slice_static"(%arg1) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 1, 3, 2, 4>
// CHECK: "ttir.paged_update_cache"(%arg0, %[[HEADS]], %{{.*}}, %arg3)
// CHECK: "ttir.paged_fill_cache"(%arg0, %arg4, %arg3)
func.func @main(%cache: tensor<9x2x8x4xf32>, %x: tensor<1x3x4x4xf32>, %i: tensor<3xi32>, %t: tensor<3x2xi32>,
    %y: tensor<1x2x9x4xf32>) -> (tensor<9x2x8x4xf32>, tensor<9x2x8x4xf32>) {
  %0 = stablehlo.custom_call @tt.paged_update_cache(%cache, %x, %i, %t) {mhlo.frontend_attributes = {share_cache = "False"}}
    : (tensor<9x2x8x4xf32>, tensor<1x3x4x4xf32>, tensor<3xi32>, tensor<3x2xi32>) -> tensor<9x2x8x4xf32>
  %1 = stablehlo.custom_call @tt.paged_fill_cache(%cache, %y, %t)
    : (tensor<9x2x8x4xf32>, tensor<1x2x9x4xf32>, tensor<3x2xi32>) -> tensor<9x2x8x4xf32>
  return %0, %1 : tensor<9x2x8x4xf32>, tensor<9x2x8x4xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: "ttir.scaled_dot_product_attention"(%arg0, %arg1, %arg1) {is_causal = true
// CHECK: %[[SEEN:.*]] = "ttir.le"(%{{.*}}, %{{.*}}) : (tensor<1x1x1x8xi32>, tensor<1x1x1x1xi32>)
// CHECK: %[[MASK:.*]] = "ttir.where"(%[[SEEN]]
// CHECK: "ttir.scaled_dot_product_attention"(%{{.*}}, %arg1, %arg1, %[[MASK]]) {is_causal = false{{.*}}scale = 2.500000e-01
func.func @main(%q: tensor<1x2x8x4xf32>, %k: tensor<1x2x8x4xf32>, %one: tensor<1x1x2x4xf32>, %i: tensor<1xi32>)
    -> (tensor<1x2x8x4xf32>, tensor<1x1x2x4xf32>) {
  %0 = stablehlo.custom_call @tt.scaled_dot_product_attention(%q, %k, %k) {mhlo.frontend_attributes = {is_causal = "True"}}
    : (tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>) -> tensor<1x2x8x4xf32>
  %1 = stablehlo.custom_call @tt.scaled_dot_product_attention_decode(%one, %k, %k, %i)
    {mhlo.frontend_attributes = {scale = "0.25", has_attention_mask = "False", has_attention_sink = "False"}}
    : (tensor<1x1x2x4xf32>, tensor<1x2x8x4xf32>, tensor<1x2x8x4xf32>, tensor<1xi32>) -> tensor<1x1x2x4xf32>
  return %0, %1 : tensor<1x2x8x4xf32>, tensor<1x1x2x4xf32>
}

// -----

// The pages of each user are joined. An attention sink is one more column of scores.
// CHECK-LABEL: @main(
// CHECK: "ttir.embedding"({{.*}}) : (tensor<6xi32>, tensor<7x24xf32>)
// CHECK: %[[SEEN:.*]] = "ttir.le"
// CHECK: "ttir.matmul"({{.*}}transpose_b = true
// CHECK: "ttir.concat"({{.*}}) {dim = 3 : i64{{.*}}} : (tensor<2x2x1x12xf32>, tensor<2x2x1x1xf32>)
// CHECK: "ttir.softmax"
func.func @main(%q: tensor<1x2x2x3xf32>, %k: tensor<7x2x4x3xf32>, %t: tensor<2x3xi32>, %p: tensor<2xi32>, %s: tensor<2x1xf32>)
    -> tensor<1x2x2x3xf32> {
  %0 = stablehlo.custom_call @tt.paged_scaled_dot_product_attention_decode(%q, %k, %k, %t, %p, %s)
    {mhlo.frontend_attributes = {has_cur_pos_tensor = "True", has_attention_mask = "False", has_attention_sink = "True"}}
    : (tensor<1x2x2x3xf32>, tensor<7x2x4x3xf32>, tensor<7x2x4x3xf32>, tensor<2x3xi32>, tensor<2xi32>, tensor<2x1xf32>)
    -> tensor<1x2x2x3xf32>
  return %0 : tensor<1x2x2x3xf32>
}

// -----

// All products are computed, and those that are not wanted become zeros.
// CHECK-LABEL: @main(
// CHECK: %[[ROWS:.*]] = "ttir.reshape"(%arg0) {shape = array<i64: 6, 1, 5, 8>}
// CHECK: %[[ALL:.*]] = "ttir.matmul"(%[[ROWS]], %arg1)
// CHECK: "ttir.ne"
// CHECK: "ttir.where"({{.*}}, %[[ALL]], {{.*}})
// CHECK: "ttir.matmul"(%arg2, %arg1)
func.func @main(%a: tensor<2x3x5x8xf32>, %b: tensor<1x4x8x6xf32>, %own: tensor<2x4x5x8xf32>, %s: tensor<2x3x1x4xf32>,
    %t: tensor<1x1x2x4xf32>) -> (tensor<2x3x1x4x5x6xf32>, tensor<2x4x5x6xf32>) {
  %0 = stablehlo.custom_call @tt.sparse_matmul(%a, %b, %s)
    {mhlo.frontend_attributes = {is_input_a_sparse = "False", is_input_b_sparse = "True"}}
    : (tensor<2x3x5x8xf32>, tensor<1x4x8x6xf32>, tensor<2x3x1x4xf32>) -> tensor<2x3x1x4x5x6xf32>
  %1 = stablehlo.custom_call @tt.sparse_matmul(%own, %b, %t)
    {mhlo.frontend_attributes = {is_input_a_sparse = "True", is_input_b_sparse = "False", nnz = "3"}}
    : (tensor<2x4x5x8xf32>, tensor<1x4x8x6xf32>, tensor<1x1x2x4xf32>) -> tensor<2x4x5x6xf32>
  return %0, %1 : tensor<2x3x1x4x5x6xf32>, tensor<2x4x5x6xf32>
}
