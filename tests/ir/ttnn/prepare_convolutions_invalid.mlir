// RUN: %opt --step ttir-to-ttnn --step prepare-convolutions --expect-error %s | %check

func.func @main(%x: tensor<1x1x16x3xf32>, %w: tensor<5x3x3x3xf32> {ttcore.argument_type = "parameter"}) -> tensor<1x1x16x4xf32> {
  // CHECK: error: ttir.conv2d: got result tensor<1x1x16x4xf32>, expected tensor<1x1x16x5xf32>
  %0 = "ttir.conv2d"(%x, %w) {batch_size = 1 : i64, input_height = 4 : i64, input_width = 4 : i64, in_channels = 3 : i64, out_channels = 5 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x16x3xf32>, tensor<5x3x3x3xf32>) -> tensor<1x1x16x4xf32>
  return %0 : tensor<1x1x16x4xf32>
}
