// RUN: %opt --step fuse-distributed-norms %s | %check

// The mean of the squares of all chips, for rows of bfloat16 with a weight of bfloat16.
// CHECK-LABEL: @main(
// CHECK-NEXT: %[[X:.*]] = "ttir.reshape"(%arg0) {shape = array<i64: 1, 1, 8, 64>}
// CHECK-NEXT: %[[N:.*]] = "ttir.distributed_rms_norm"(%[[X]], %arg1) {cluster_axis = 1 : i64, epsilon = {{.*}} : f32} : (tensor<1x1x8x64xbf16>, tensor<64xbf16>) -> tensor<1x1x8x64xbf16>
// CHECK-NEXT: %[[R:.*]] = "ttir.reshape"(%[[N]]) {shape = array<i64: 2, 4, 64>}
// CHECK-NEXT: return %[[R]]
module attributes {ttcore.mesh_shape = array<i64: 2, 4>} {
func.func @main(%x: tensor<2x4x64xbf16>, %w: tensor<64xbf16> {ttcore.argument_type = "parameter"}) -> tensor<2x4x64xbf16> {
  %eps = "ttir.full"() {fill_value = 1.0e-5 : f64, shape = array<i64>} : () -> tensor<f32>
  %four = "ttir.full"() {fill_value = 4.0 : f64, shape = array<i64>} : () -> tensor<f32>
  %f = "ttir.typecast"(%x) {dtype = f32} : (tensor<2x4x64xbf16>) -> tensor<2x4x64xf32>
  %s = "ttir.multiply"(%f, %f) : (tensor<2x4x64xf32>, tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
  %m = "ttir.mean"(%s) {dim_arg = array<i64: 2>, keep_dim = true} : (tensor<2x4x64xf32>) -> tensor<2x4x1xf32>
  %a = "ttir.all_reduce"(%m) {cluster_axis = 1 : i64} : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %d = "ttir.divide"(%a, %four) : (tensor<2x4x1xf32>, tensor<f32>) -> tensor<2x4x1xf32>
  %e = "ttir.add"(%d, %eps) : (tensor<2x4x1xf32>, tensor<f32>) -> tensor<2x4x1xf32>
  %r = "ttir.rsqrt"(%e) : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %n = "ttir.multiply"(%f, %r) : (tensor<2x4x64xf32>, tensor<2x4x1xf32>) -> tensor<2x4x64xf32>
  %g = "ttir.typecast"(%w) {dtype = f32} : (tensor<64xbf16>) -> tensor<64xf32>
  %y = "ttir.multiply"(%n, %g) : (tensor<2x4x64xf32>, tensor<64xf32>) -> tensor<2x4x64xf32>
  %z = "ttir.typecast"(%y) {dtype = bf16} : (tensor<2x4x64xf32>) -> tensor<2x4x64xbf16>
  return %z : tensor<2x4x64xbf16>
}
}
