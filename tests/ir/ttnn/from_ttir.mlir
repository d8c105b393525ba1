// RUN: %opt --step ttir-to-ttnn %s | %check

// Inputs are uploaded to DRAM, parameters stay on the host until const-eval; ops make tiles.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>, %w: tensor<2x3xf32> {ttcore.argument_type = "parameter"}) -> tensor<2x3xf32> {
  // CHECK-SAME: %arg0: tensor<2x3xf32, #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved"
  // CHECK-SAME: %arg1: tensor<2x3xf32, #ttnn.layout<"Float32", "RowMajor", "SystemMemory"
  // CHECK: "ttnn.add"(%arg0, %arg1) {{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  %0 = "ttir.add"(%x, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Attributes take the form of the wire.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<2x3xf32>, tensor<8x6xf32>) {
  // CHECK: "ttnn.clamp_scalar"(%arg0) {params = {ClampScalarOpParams = {max = {FP = {value = 6.0{{.*}} min = {FP =
  %0 = "ttir.clamp_scalar"(%x) {min = 0.0 : f32, max = 6.0 : f32} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: "ttnn.slice_static"(%arg0) {params = {SliceStaticOpParams = {begins = array<i64: 0, 0>, ends = array<i64: 4, 6>}}, step = array<i64: 2, 2>}
  %1 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0>, ends = array<i64: 4, 6>, step = array<i64: 2, 2>} : (tensor<4x6xf32>) -> tensor<2x3xf32>
  // CHECK: "ttnn.repeat"(%arg0) {repeat_dims = array<i64: 2, 1>}
  %2 = "ttir.broadcast"(%x) {broadcast_dimensions = array<i64: 2, 1>} : (tensor<4x6xf32>) -> tensor<8x6xf32>
  return %0, %1, %2 : tensor<4x6xf32>, tensor<2x3xf32>, tensor<8x6xf32>
}

// -----

// Sequences and splats.
// CHECK-LABEL: @main(
func.func @main() -> (tensor<5xi32>, tensor<2x5xi32>, tensor<3xf32>, tensor<3xi32>) {
  // CHECK: "ttnn.arange"() {end = 5.0{{.*}}, start = 0.0{{.*}}, step = 1.0{{.*}}} : () -> tensor<5xi32, #ttnn.layout<"Int32", "RowMajor"
  %0 = "ttir.arange"() {start = 0 : i64, end = 5 : i64, step = 1 : i64, arange_dimension = 0 : i64} : () -> tensor<5xi32>
  // CHECK: [[V:%[0-9]+]] = "ttnn.arange"
  // CHECK: [[R:%[0-9]+]] = "ttnn.reshape"([[V]]) {shape = array<i64: 1, 5>}
  // CHECK: "ttnn.repeat"([[R]]) {repeat_dims = array<i64: 2, 1>}
  %1 = "ttir.arange"() {start = 0 : i64, end = 5 : i64, step = 1 : i64, arange_dimension = 1 : i64} : () -> tensor<2x5xi32>
  // CHECK: "ttnn.full"() {fill_value = {FP = {value = 1.5{{.*}} : f64}}}
  %2 = "ttir.full"() {shape = array<i64: 3>, fill_value = 1.5 : f64} : () -> tensor<3xf32>
  // CHECK: "ttnn.full"() {fill_value = {I32 = {value = 7 : i64}}}
  %3 = "ttir.full"() {shape = array<i64: 3>, fill_value = 7 : i64} : () -> tensor<3xi32>
  return %0, %1, %2, %3 : tensor<5xi32>, tensor<2x5xi32>, tensor<3xf32>, tensor<3xi32>
}
