// RUN: env TT_TORCH_KV_CACHE_DTYPE=bfp8_b %opt --step caches %s | %check
// RUN: %opt --step caches %s | filecheck %s --check-prefix=OFF
// OFF-NOT: BFP_BFloat8

// The states that ops of caches write have the type, and what is made of them. An update rounds its entries, and a cast
// rounds those of a fill. The arguments that are no caches keep their types.
#tile = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#rows = #ttnn.layout<"UInt32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
// CHECK: @main(%arg0: tensor<1x1x64x32xbf16, #ttnn.layout<"BFP_BFloat8", {{.*}}%arg1: tensor<1x1x64x32xbf16, #ttnn.layout<"BFP_BFloat8", {{.*}}%arg2: tensor<1x1x32x32xbf16, #ttnn.layout<"BFloat16"
func.func @main(%k: tensor<1x1x64x32xbf16, #tile> {tf.aliasing_output = 0 : i32, ttcore.argument_type = "state"}, %v: tensor<1x1x64x32xbf16, #tile> {tf.aliasing_output = 1 : i32, ttcore.argument_type = "state"}, %new: tensor<1x1x32x32xbf16, #tile>, %one: tensor<1x1x1x32xbf16, #tile>, %position: tensor<1xui32, #rows>) -> (tensor<1x1x64x32xbf16, #tile>, tensor<1x1x64x32xbf16, #tile>, tensor<1x1x32x64xbf16, #tile>) {
  // CHECK-NEXT: [[NEW:%[0-9]+]] = "ttnn.typecast"(%arg2) {{.*}} -> tensor<1x1x32x32xbf16, #ttnn.layout<"BFP_BFloat8"
  // CHECK-NEXT: "ttnn.fill_cache"(%arg0, [[NEW]])
  // CHECK-NEXT: "ttnn.update_cache"(%arg1, %arg3, %arg4)
  // CHECK-NEXT: [[R:%[0-9]+]] = "ttnn.reshape"(%arg1) {{.*}} -> tensor<64x32xbf16, #ttnn.layout<"BFP_BFloat8"
  // CHECK-NEXT: "ttnn.matmul"(%arg2, [[R]]) {{.*}} -> tensor<1x1x32x64xbf16, #ttnn.layout<"BFloat16"
  // CHECK-NEXT: return %arg0, %arg1
  "ttnn.fill_cache"(%k, %new) {batch_offset = 0 : i64} : (tensor<1x1x64x32xbf16, #tile>, tensor<1x1x32x32xbf16, #tile>) -> ()
  "ttnn.update_cache"(%v, %one, %position) {batch_offset = 0 : i64} : (tensor<1x1x64x32xbf16, #tile>, tensor<1x1x1x32xbf16, #tile>, tensor<1xui32, #rows>) -> ()
  %0 = "ttnn.reshape"(%v) {shape = array<i64: 64, 32>} : (tensor<1x1x64x32xbf16, #tile>) -> tensor<64x32xbf16, #tile>
  %1 = "ttnn.matmul"(%new, %0) {transpose_a = false, transpose_b = true} : (tensor<1x1x32x32xbf16, #tile>, tensor<64x32xbf16, #tile>) -> tensor<1x1x32x64xbf16, #tile>
  return %k, %v, %1 : tensor<1x1x64x32xbf16, #tile>, tensor<1x1x64x32xbf16, #tile>, tensor<1x1x32x64xbf16, #tile>
}
