// RUN: %opt --step ttir-to-ttnn --step prepare-convolutions --step layouts %s | %check
// RUN: env TT_TORCH_WEIGHT_DTYPE=bfp8_b %opt --step ttir-to-ttnn --step layouts %s | filecheck %s --check-prefix=BLOCKS

// Operands are moved to the device and converted to tiles, once for all readers.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>, %w: tensor<2x3xf32> {ttcore.argument_type = "parameter"}) -> tensor<2x3xf32> {
  // CHECK-NEXT: [[X:%[0-9]+]] = "ttnn.to_layout"(%arg0)
  // CHECK-NEXT: [[D:%[0-9]+]] = "ttnn.to_device"(%arg1) {{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "RowMajor", "DRAM"
  // CHECK-NEXT: [[W:%[0-9]+]] = "ttnn.to_layout"([[D]])
  // CHECK-NEXT: [[S:%[0-9]+]] = "ttnn.add"([[X]], [[W]])
  // CHECK-NEXT: "ttnn.multiply"([[S]], [[X]])
  %0 = "ttir.add"(%x, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.multiply"(%0, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// An embedding takes unsigned indices in row-major layout, and a row-major table.
// CHECK-LABEL: @main(
func.func @main(%i: tensor<2x3xi32>, %t: tensor<9x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK-NEXT: [[I:%[0-9]+]] = "ttnn.typecast"(%arg0) {{.*}} -> tensor<2x3xui32, #ttnn.layout<"UInt32", "RowMajor"
  // CHECK-NEXT: "ttnn.embedding"([[I]], %arg1)
  %0 = "ttir.embedding"(%i, %t) : (tensor<2x3xi32>, tensor<9x4xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----

// Weights and a bias that are not prepared are passed from the host.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x16x3xf32>, %w: tensor<5x3x3x3xf32> {ttcore.argument_type = "input"}, %b: tensor<1x1x1x5xf32>) -> tensor<1x1x16x5xf32> {
  // CHECK: [[H:%[0-9]+]] = "ttnn.from_device"(%arg1) {{.*}} -> tensor<5x3x3x3xf32, #ttnn.layout<"Float32", "RowMajor", "SystemMemory"
  // CHECK: [[B:%[0-9]+]] = "ttnn.from_device"(%arg2) {{.*}} -> tensor<1x1x1x5xf32, #ttnn.layout<"Float32", "RowMajor", "SystemMemory"
  // CHECK: "ttnn.conv2d"({{.*}}, [[H]], [[B]])
  %0 = "ttir.conv2d"(%x, %w, %b) {batch_size = 1 : i64, input_height = 4 : i64, input_width = 4 : i64, in_channels = 3 : i64, out_channels = 5 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<1x1x16x3xf32>, tensor<5x3x3x3xf32>, tensor<1x1x1x5xf32>) -> tensor<1x1x16x5xf32>
  return %0 : tensor<1x1x16x5xf32>
}

// -----

// A constant is in the host's memory, row by row, until it is needed on the device in tiles.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: "ttnn.constant"() {{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "RowMajor", "SystemMemory", "Interleaved"
  // CHECK: "ttnn.to_device"
  // CHECK: "ttnn.add"
  %0 = "ttir.constant"() {value = dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %1 = "ttir.add"(%x, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// With the option `weight_dtype`, right operands of products get its data type if they are weights.
// BLOCKS: @main(%arg0: tensor<2x32xf32
func.func @main(%x: tensor<2x32xf32>, %y: tensor<32x32xf32>, %w: tensor<32x32xf32> {ttcore.argument_type = "parameter"}) -> tensor<2x32xf32> {
  // BLOCKS-NEXT: [[X:%[0-9]+]] = "ttnn.to_layout"(%arg0) {{.*}} -> tensor<2x32xf32
  // BLOCKS-NEXT: "ttnn.to_device"(%arg2)
  // BLOCKS-NEXT: [[W:%[0-9]+]] = "ttnn.to_layout"{{.*}} -> tensor<32x32xbf16, #ttnn.layout<"BFP_BFloat8"
  // BLOCKS-NEXT: [[Z:%[0-9]+]] = "ttnn.matmul"([[X]], [[W]])
  // BLOCKS-NEXT: [[Y:%[0-9]+]] = "ttnn.to_layout"(%arg1) {{.*}} -> tensor<32x32xf32
  // BLOCKS-NEXT: "ttnn.matmul"([[Z]], [[Y]])
  %0 = "ttir.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<2x32xf32>, tensor<32x32xf32>) -> tensor<2x32xf32>
  %1 = "ttir.matmul"(%0, %y) {transpose_a = false, transpose_b = false} : (tensor<2x32xf32>, tensor<32x32xf32>) -> tensor<2x32xf32>
  return %1 : tensor<2x32xf32>
}
