// RUN: %opt --step ttir-to-ttnn --step prepare-convolutions %s | %check
// RUN: %opt --step ttir-to-ttnn --step prepare-convolutions --step prepare-convolutions %s | %check
// The second run finds nothing left to prepare.

// Parameters are prepared as weights.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x16x3xf32>, %w: tensor<5x3x3x3xf32> {ttcore.argument_type = "parameter"}) -> tensor<1x1x16x5xf32> {
  // CHECK: [[W:%[0-9]+]] = "ttnn.prepare_conv2d_weights"(%arg1) {{.*}}has_bias = false{{.*}}input_dtype = "Float32"
  // CHECK-SAME: input_memory_config = {buffer_type = "DRAM", tensor_memory_layout = "Interleaved"}
  // CHECK-SAME: -> tensor<1x1x27x5xf32
  // CHECK: "ttnn.conv2d"(%arg0, [[W]])
  %0 = "ttir.conv2d"(%x, %w) {batch_size = 1 : i64, input_height = 4 : i64, input_width = 4 : i64, in_channels = 3 : i64, out_channels = 5 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x16x3xf32>, tensor<5x3x3x3xf32>) -> tensor<1x1x16x5xf32>
  return %0 : tensor<1x1x16x5xf32>
}

// -----

// Weights that depend on an input are not prepared.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x16x3xf32>, %w: tensor<5x3x3x3xf32> {ttcore.argument_type = "input"}) -> tensor<1x1x16x5xf32> {
  // CHECK-NOT: prepare_conv2d
  // CHECK: "ttnn.conv2d"(%arg0, %arg1)
  %0 = "ttir.conv2d"(%x, %w) {batch_size = 1 : i64, input_height = 4 : i64, input_width = 4 : i64, in_channels = 3 : i64, out_channels = 5 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x16x3xf32>, tensor<5x3x3x3xf32>) -> tensor<1x1x16x5xf32>
  return %0 : tensor<1x1x16x5xf32>
}
