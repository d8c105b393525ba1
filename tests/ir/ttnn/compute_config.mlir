// RUN: env TT_TORCH_MATH_FIDELITY=hifi2 %opt --step compute-config %s | %check
// RUN: env TT_TORCH_FP32_DEST_ACC_EN=0 %opt --step compute-config %s | filecheck %s --check-prefix=BF16
// RUN: env TT_TORCH_MATH_FIDELITY=ttnn_default %opt --step compute-config %s | filecheck %s --check-prefix=OPEN
// RUN: %opt --step compute-config %s | filecheck %s --check-prefix=OFF
// OFF-NOT: compute_config

// Products, sums and norms have the options. Other ops have no such field. This also holds in functions of constants.
#tile = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
// CHECK-LABEL: @main(
// BF16-LABEL: @main(
// OPEN-LABEL: @main(
func.func @main(%x: tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile> {
  // CHECK: "ttnn.matmul"{{.*}}compute_config = {fp32_dest_acc_en = true, math_fidelity = "HiFi2"}
  // CHECK-NEXT: "ttnn.softmax"{{.*}}compute_config = {fp32_dest_acc_en = true, math_fidelity = "HiFi2"}
  // CHECK-NOT: compute_config
  // CHECK: "ttnn.exp"
  // BF16: "ttnn.matmul"{{.*}}compute_config = {fp32_dest_acc_en = false, math_fidelity = "HiFi4"}
  // OPEN: "ttnn.matmul"{{.*}}compute_config = {}
  %0 = "ttnn.matmul"(%x, %x) {transpose_a = false, transpose_b = false} : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  %1 = "ttnn.softmax"(%0) {dimension = 1 : i64, numeric_stable = true} : (tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  %2 = "ttnn.exp"(%1) : (tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  return %2 : tensor<32x32xbf16, #tile>
}
// CHECK-LABEL: @other(
func.func @other(%x: tensor<32x32xbf16, #tile>) -> tensor<32x1xbf16, #tile> {
  // CHECK: "ttnn.sum"{{.*}}compute_config = {fp32_dest_acc_en = true, math_fidelity = "HiFi2"}
  %0 = "ttnn.sum"(%x) {dim_arg = array<i64: 1>, keep_dim = true} : (tensor<32x32xbf16, #tile>) -> tensor<32x1xbf16, #tile>
  return %0 : tensor<32x1xbf16, #tile>
}
