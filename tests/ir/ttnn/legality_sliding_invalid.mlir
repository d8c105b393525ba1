// RUN: %opt --step legality --expect-error %s | %check

// CHECK: ttnn.prepare_conv2d_bias, and ttnn {{.*}} does not take an operand on the device
#device = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#made = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%b: tensor<1x1x1x5xf32, #device>) -> tensor<1x1x1x5xf32, #made> {
  %0 = "ttnn.prepare_conv2d_bias"(%b) {batch_size = 1 : i64, input_height = 4 : i64, input_width = 4 : i64, in_channels = 3 : i64, out_channels = 5 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, input_dtype = "Float32", input_tensor_layout = "Tile", input_memory_config = {buffer_type = "DRAM"}} : (tensor<1x1x1x5xf32, #device>) -> tensor<1x1x1x5xf32, #made>
  return %0 : tensor<1x1x1x5xf32, #made>
}

// -----

// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.conv2d, and ttnn {{.*}} does not take a result in L1
#tiles = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#l1 = #ttnn.layout<"Float32", "Tile", "L1", "Interleaved", array<i64: 1, 1>>
#host = #ttnn.layout<"Float32", "RowMajor", "SystemMemory", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<1x1x16x3xf32, #tiles>, %w: tensor<5x3x3x3xf32, #host>) -> tensor<1x1x16x5xf32, #l1> {
  %0 = "ttnn.conv2d"(%x, %w) {batch_size = 1 : i64, input_height = 4 : i64, input_width = 4 : i64, in_channels = 3 : i64, out_channels = 5 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x16x3xf32, #tiles>, tensor<5x3x3x3xf32, #host>) -> tensor<1x1x16x5xf32, #tiles>
  %1 = "ttnn.conv2d"(%x, %w) {batch_size = 1 : i64, input_height = 4 : i64, input_width = 4 : i64, in_channels = 3 : i64, out_channels = 5 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x16x3xf32, #tiles>, tensor<5x3x3x3xf32, #host>) -> tensor<1x1x16x5xf32, #l1> loc("illegal")
  return %1 : tensor<1x1x16x5xf32, #l1>
}

// -----

// Refused: 16 rows of one column in the result, if the kernel does not read them as one run. More columns are taken.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.conv2d, and ttnn {{.*}} does not take a narrow image
#tiles = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#host = #ttnn.layout<"Float32", "RowMajor", "SystemMemory", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<1x1x48x3xf32, #tiles>, %y: tensor<1x1x80x3xf32, #tiles>, %w: tensor<5x3x1x3xf32, #host>) -> tensor<1x1x16x5xf32, #tiles> {
  %0 = "ttnn.conv2d"(%y, %w) {batch_size = 1 : i64, input_height = 16 : i64, input_width = 5 : i64, in_channels = 3 : i64, out_channels = 5 : i64, kernel_size = array<i64: 1, 3>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x80x3xf32, #tiles>, tensor<5x3x1x3xf32, #host>) -> tensor<1x1x48x5xf32, #tiles>
  %1 = "ttnn.conv2d"(%x, %w) {batch_size = 1 : i64, input_height = 16 : i64, input_width = 3 : i64, in_channels = 3 : i64, out_channels = 5 : i64, kernel_size = array<i64: 1, 3>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x48x3xf32, #tiles>, tensor<5x3x1x3xf32, #host>) -> tensor<1x1x16x5xf32, #tiles> loc("illegal")
  return %1 : tensor<1x1x16x5xf32, #tiles>
}

// -----

// Positions in an image of 256 by 256 have 32 bits.
// CHECK: ttnn.max_pool2d_with_indices, and ttnn {{.*}} does not take a result of UInt16 in RowMajor: it is UInt32 in RowMajor
#bf16 = #ttnn.layout<"BFloat16", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#ui16 = #ttnn.layout<"UInt16", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<1x1x65280x1xbf16, #bf16>, %y: tensor<1x1x65536x1xbf16, #bf16>) -> tensor<1x1x1x1xui16, #ui16> {
  %0, %1 = "ttnn.max_pool2d_with_indices"(%x) {batch_size = 1 : i64, input_height = 255 : i64, input_width = 256 : i64, channels = 1 : i64, kernel_size = array<i64: 255, 256>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (tensor<1x1x65280x1xbf16, #bf16>) -> (tensor<1x1x1x1xbf16, #bf16>, tensor<1x1x1x1xui16, #ui16>)
  %2, %3 = "ttnn.max_pool2d_with_indices"(%y) {batch_size = 1 : i64, input_height = 256 : i64, input_width = 256 : i64, channels = 1 : i64, kernel_size = array<i64: 256, 256>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (tensor<1x1x65536x1xbf16, #bf16>) -> (tensor<1x1x1x1xbf16, #bf16>, tensor<1x1x1x1xui16, #ui16>)
  return %3 : tensor<1x1x1x1xui16, #ui16>
}

// -----

// CHECK: ttnn.conv3d, and ttnn {{.*}} does not take groups
#rows = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<1x2x2x2x64xf32, #rows>, %w: tensor<32x32xf32, #rows>) -> tensor<1x2x2x2x32xf32, #rows> {
  %0 = "ttnn.conv3d"(%x, %w) {batch_size = 1 : i64, input_depth = 2 : i64, input_height = 2 : i64, input_width = 2 : i64, in_channels = 64 : i64, out_channels = 32 : i64, kernel_size = array<i64: 1, 1, 1>, stride = array<i64: 1, 1, 1>, padding = array<i64: 0, 0, 0>, groups = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x2x2x2x64xf32, #rows>, tensor<32x32xf32, #rows>) -> tensor<1x2x2x2x32xf32, #rows>
  return %0 : tensor<1x2x2x2x32xf32, #rows>
}

// -----

// Half a tile of channels is taken only if a filter has an even number of positions.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.conv3d, and ttnn {{.*}} does not take 16 channels
#rows = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<1x2x2x2x16xf32, #rows>, %w: tensor<32x32xf32, #rows>, %v: tensor<16x32xf32, #rows>) -> tensor<1x2x2x2x32xf32, #rows> {
  %0 = "ttnn.conv3d"(%x, %w) {batch_size = 1 : i64, input_depth = 2 : i64, input_height = 2 : i64, input_width = 2 : i64, in_channels = 16 : i64, out_channels = 32 : i64, kernel_size = array<i64: 2, 1, 1>, stride = array<i64: 1, 1, 1>, padding = array<i64: 0, 0, 0>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x2x2x2x16xf32, #rows>, tensor<32x32xf32, #rows>) -> tensor<1x1x2x2x32xf32, #rows>
  %1 = "ttnn.conv3d"(%x, %v) {batch_size = 1 : i64, input_depth = 2 : i64, input_height = 2 : i64, input_width = 2 : i64, in_channels = 16 : i64, out_channels = 32 : i64, kernel_size = array<i64: 1, 1, 1>, stride = array<i64: 1, 1, 1>, padding = array<i64: 0, 0, 0>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x2x2x2x16xf32, #rows>, tensor<16x32xf32, #rows>) -> tensor<1x2x2x2x32xf32, #rows> loc("illegal")
  return %1 : tensor<1x2x2x2x32xf32, #rows>
}

// -----

// Refused: 16 rows of two columns in the result. 15 rows are taken, and 16 rows that the kernel reads as one run.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.conv_transpose2d, and ttnn {{.*}} does not take a narrow image
#tiles = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#host = #ttnn.layout<"Float32", "RowMajor", "SystemMemory", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<1x1x15x4xf32, #tiles>, %y: tensor<1x1x16x4xf32, #tiles>, %v: tensor<4x4x1x1xf32, #host>, %w: tensor<4x4x1x2xf32, #host>) -> tensor<1x1x32x4xf32, #tiles> {
  %0 = "ttnn.conv_transpose2d"(%x, %w) {batch_size = 1 : i64, input_height = 15 : i64, input_width = 1 : i64, in_channels = 4 : i64, out_channels = 4 : i64, kernel_size = array<i64: 1, 2>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x15x4xf32, #tiles>, tensor<4x4x1x2xf32, #host>) -> tensor<1x1x30x4xf32, #tiles>
  %1 = "ttnn.conv_transpose2d"(%y, %v) {batch_size = 1 : i64, input_height = 16 : i64, input_width = 1 : i64, in_channels = 4 : i64, out_channels = 4 : i64, kernel_size = array<i64: 1, 1>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x16x4xf32, #tiles>, tensor<4x4x1x1xf32, #host>) -> tensor<1x1x16x4xf32, #tiles>
  %2 = "ttnn.conv_transpose2d"(%y, %w) {batch_size = 1 : i64, input_height = 16 : i64, input_width = 1 : i64, in_channels = 4 : i64, out_channels = 4 : i64, kernel_size = array<i64: 1, 2>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x16x4xf32, #tiles>, tensor<4x4x1x2xf32, #host>) -> tensor<1x1x32x4xf32, #tiles> loc("illegal")
  return %2 : tensor<1x1x32x4xf32, #tiles>
}

// -----

// CHECK: ttnn.conv_transpose2d, and ttnn {{.*}} does not take a result in L1
#tiles = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#l1 = #ttnn.layout<"Float32", "Tile", "L1", "Interleaved", array<i64: 1, 1>>
#host = #ttnn.layout<"Float32", "RowMajor", "SystemMemory", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<1x1x15x4xf32, #tiles>, %w: tensor<4x4x1x1xf32, #host>) -> tensor<1x1x15x4xf32, #l1> {
  %0 = "ttnn.conv_transpose2d"(%x, %w) {batch_size = 1 : i64, input_height = 15 : i64, input_width = 1 : i64, in_channels = 4 : i64, out_channels = 4 : i64, kernel_size = array<i64: 1, 1>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x15x4xf32, #tiles>, tensor<4x4x1x1xf32, #host>) -> tensor<1x1x15x4xf32, #l1>
  return %0 : tensor<1x1x15x4xf32, #l1>
}
