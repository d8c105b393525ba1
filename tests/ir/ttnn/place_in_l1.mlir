// RUN: env TT_TORCH_OPTIMIZER=1 %opt --step ttir-to-ttnn --step layouts --step place-in-l1 %s | %check
// RUN: %opt --step ttir-to-ttnn --step layouts --step place-in-l1 %s | filecheck %s --check-prefix=OFF
// OFF-NOT: "L1"

// A value that an op computes, and that only computing ops read, goes to L1. Inputs and results stay in DRAM.
// CHECK-LABEL: @main(
// CHECK-NOT: "L1"
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: "ttnn.to_layout"(%arg0) {{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  // CHECK-NEXT: "ttnn.exp"({{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "L1"
  // CHECK-NEXT: "ttnn.softmax"({{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "L1"
  // CHECK-NEXT: "ttnn.add"({{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  %0 = "ttir.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.softmax"(%0) {dimension = 1 : i64, numeric_stable = true} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// -----

// A value stays in DRAM if data movement makes it or is one of its readers, or if no op reads it.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>) {
  // CHECK-NOT: "L1"
  %0 = "ttir.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.permute"(%0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = "ttir.abs"(%1) : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %3 = "ttir.neg"(%0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = "ttir.sin"(%1) : (tensor<3x2xf32>) -> tensor<3x2xf32>
  return %2, %4 : tensor<3x2xf32>, tensor<3x2xf32>
}

// -----

// One value of 32 MB fits, and two do not. The memory of the first is free after its last reader.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4096x2048xf32>) -> tensor<4096x2048xf32> {
  // CHECK: "ttnn.exp"({{.*}}"L1", "Interleaved", array<i64: 1, 1>>>{{$}}
  // CHECK-NEXT: "ttnn.sin"({{.*}} -> tensor<4096x2048xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  // CHECK-NEXT: "ttnn.add"({{.*}} -> tensor<4096x2048xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  // CHECK-NEXT: "ttnn.cos"({{.*}} -> tensor<4096x2048xf32, #ttnn.layout<"Float32", "Tile", "L1"
  // CHECK-NEXT: "ttnn.neg"({{.*}} -> tensor<4096x2048xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  %0 = "ttir.exp"(%x) : (tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %1 = "ttir.sin"(%x) : (tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<4096x2048xf32>, tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %3 = "ttir.cos"(%2) : (tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  %4 = "ttir.neg"(%3) : (tensor<4096x2048xf32>) -> tensor<4096x2048xf32>
  return %4 : tensor<4096x2048xf32>
}

// -----

// Half of the cores' memory is for values: on an n150, 47,939,584 bytes, or 11,704 tiles of float32.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<11704x32x32xf32>, %y: tensor<11705x32x32xf32>) -> (tensor<11704x32x32xf32>, tensor<11705x32x32xf32>) {
  // CHECK: "ttnn.exp"({{.*}} -> tensor<11704x32x32xf32, #ttnn.layout<"Float32", "Tile", "L1"
  // CHECK: "ttnn.exp"({{.*}} -> tensor<11705x32x32xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  %0 = "ttir.exp"(%x) : (tensor<11704x32x32xf32>) -> tensor<11704x32x32xf32>
  %1 = "ttir.neg"(%0) : (tensor<11704x32x32xf32>) -> tensor<11704x32x32xf32>
  %2 = "ttir.exp"(%y) : (tensor<11705x32x32xf32>) -> tensor<11705x32x32xf32>
  %3 = "ttir.neg"(%2) : (tensor<11705x32x32xf32>) -> tensor<11705x32x32xf32>
  return %1, %3 : tensor<11704x32x32xf32>, tensor<11705x32x32xf32>
}

// -----

// A value stays in DRAM if the library does not read it in L1, as for a linear op with transposed weights and a bias.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4xf32>, %w: tensor<5x4xf32>, %b: tensor<5xf32>) -> tensor<2x5xf32> {
  // CHECK: "ttnn.exp"({{.*}} -> tensor<2x4xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  // CHECK: "ttnn.linear"({{.*}} -> tensor<2x5xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  // CHECK-NEXT: "ttnn.sin"({{.*}} -> tensor<2x5xf32, #ttnn.layout<"Float32", "Tile", "L1"
  %0 = "ttir.exp"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "ttir.linear"(%0, %w, %b) {transpose_a = false, transpose_b = true, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x4xf32>, tensor<5x4xf32>, tensor<5xf32>) -> tensor<2x5xf32>
  %2 = "ttir.sin"(%1) : (tensor<2x5xf32>) -> tensor<2x5xf32>
  %3 = "ttir.neg"(%2) : (tensor<2x5xf32>) -> tensor<2x5xf32>
  return %3 : tensor<2x5xf32>
}
