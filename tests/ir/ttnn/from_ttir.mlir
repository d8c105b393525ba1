// RUN: %opt --step ttir-to-ttnn %s | %check

// Inputs are in DRAM, parameters are on the host until const-eval, and the results of ops are tiles.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>, %w: tensor<2x3xf32> {ttcore.argument_type = "parameter"}) -> tensor<2x3xf32> {
  // CHECK-SAME: %arg0: tensor<2x3xf32, #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved"
  // CHECK-SAME: %arg1: tensor<2x3xf32, #ttnn.layout<"Float32", "RowMajor", "SystemMemory"
  // CHECK: "ttnn.add"(%arg0, %arg1) {{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
  %0 = "ttir.add"(%x, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Attributes get the form of the wire format.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x6xf32>, %g: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<2x3xf32>, tensor<8x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  // CHECK: "ttnn.clamp_scalar"(%arg0) {params = {ClampScalarOpParams = {max = {FP = {value = 6.0{{.*}} min = {FP =
  %0 = "ttir.clamp_scalar"(%x) {min = 0.0 : f32, max = 6.0 : f32} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: "ttnn.slice_static"(%arg0) {params = {SliceStaticOpParams = {begins = array<i64: 0, 0>, ends = array<i64: 4, 6>}}, step = array<i64: 2, 2>}
  %1 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0>, ends = array<i64: 4, 6>, step = array<i64: 2, 2>} : (tensor<4x6xf32>) -> tensor<2x3xf32>
  // CHECK: "ttnn.repeat"(%arg0) {repeat_dims = array<i64: 2, 1>}
  %2 = "ttir.broadcast"(%x) {broadcast_dimensions = array<i64: 2, 1>} : (tensor<4x6xf32>) -> tensor<8x6xf32>
  // CHECK: "ttnn.leaky_relu"(%arg0) {params = {EltwiseOpWithFloatParams = {parameter = 2.5{{.*}} : f64}}}
  %3 = "ttir.leaky_relu"(%x) {parameter = 0.25 : f32} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  // CHECK: "ttnn.rms_norm"(%arg0, %arg1) {epsilon = 2.5
  %4 = "ttir.rms_norm"(%x, %g) {epsilon = 0.25 : f32, operandSegmentSizes = array<i32: 1, 1>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %0, %1, %2, %3, %4 : tensor<4x6xf32>, tensor<2x3xf32>, tensor<8x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// The gelu with tanh is x * sigmoid(x * (x ** 2 * 0.0713548 + 1.5957691)).
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // CHECK-DAG: [[SLOPE:%[0-9]+]] = "ttnn.full"() {fill_value = {FP = {value = 1.59576912{{.*}}tensor<1x1xf32
  // CHECK-DAG: [[CUBIC:%[0-9]+]] = "ttnn.full"() {fill_value = {FP = {value = 0.07135481{{.*}}tensor<1x1xf32
  // CHECK: [[A:%[0-9]+]] = "ttnn.multiply"(%arg0, %arg0)
  // CHECK: [[B:%[0-9]+]] = "ttnn.multiply"([[A]], [[CUBIC]])
  // CHECK: [[C:%[0-9]+]] = "ttnn.add"([[B]], [[SLOPE]])
  // CHECK: [[D:%[0-9]+]] = "ttnn.multiply"([[C]], %arg0)
  // CHECK: [[E:%[0-9]+]] = "ttnn.sigmoid"([[D]])
  // CHECK: [[F:%[0-9]+]] = "ttnn.multiply"([[E]], %arg0)
  // CHECK: return [[F]]
  %0 = "ttir.gelu_tanh"(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// -----

// Ops that create sequences and splats.
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

// -----

// One field of the wire lists all results of an ordering. The other ops are a transposed and a volume convolution.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x9xf32>, %i: tensor<1x1x30x4xf32>, %w: tensor<4x6x3x3xf32>, %v: tensor<2x5x6x7x4xf32>,
    %m: tensor<72x8xf32>) -> (tensor<4x3xf32>, tensor<4x3xi32>, tensor<1x1x56x6xf32>, tensor<2x4x4x5x8xf32>) {
  // CHECK: "ttnn.topk"(%arg0) {dim = 1 : i64, k = 3 : i64, largest = true, sorted = true}
  // CHECK-SAME: -> (tensor<4x3xf32, #ttnn.layout<"Float32", "Tile"{{.*}}>, tensor<4x3xi32, #ttnn.layout<"Int32", "Tile"
  %0:2 = "ttir.topk"(%x) {k = 3 : i64, dim = 1 : i64, largest = true, sorted = true} : (tensor<4x9xf32>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
  // CHECK: "ttnn.conv_transpose2d"(%arg1, %arg2) {{.*}}output_padding = array<i64: 0, 0>
  %1 = "ttir.conv_transpose2d"(%i, %w) {batch_size = 1 : i64, input_height = 5 : i64, input_width = 6 : i64, in_channels = 4 : i64, out_channels = 6 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0>, output_padding = array<i64: 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x30x4xf32>, tensor<4x6x3x3xf32>) -> tensor<1x1x56x6xf32>
  // CHECK: "ttnn.conv3d"(%arg3, %arg4) {{.*}} -> tensor<2x4x4x5x8xf32, #ttnn.layout<"Float32", "RowMajor"
  %2 = "ttir.conv3d"(%v, %m) {batch_size = 2 : i64, input_depth = 5 : i64, input_height = 6 : i64, input_width = 7 : i64, in_channels = 4 : i64, out_channels = 8 : i64, groups = 1 : i64, kernel_size = array<i64: 2, 3, 3>, stride = array<i64: 1, 1, 1>, padding = array<i64: 0, 0, 0>, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<2x5x6x7x4xf32>, tensor<72x8xf32>) -> tensor<2x4x4x5x8xf32>
  return %0#0, %0#1, %1, %2 : tensor<4x3xf32>, tensor<4x3xi32>, tensor<1x1x56x6xf32>, tensor<2x4x4x5x8xf32>
}

// -----

// Transfers write into one tensor, which the first of them makes. The way from chip 1 to chip 2, in another row and
// another column, has a corner. Chip 3 has no sender, so it copies zeros that nothing writes to.
// CHECK-LABEL: @main(
module attributes {ttcore.mesh_shape = array<i64: 2, 2>} {
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: [[Z:%[0-9]+]] = "ttnn.full"()
  // CHECK: [[A:%[0-9]+]] = "ttnn.point_to_point"(%arg0) {{{.*}}receiver_coord = array<i64: 0, 1>, sender_coord = array<i64: 0, 0>}
  // CHECK: [[C:%[0-9]+]] = "ttnn.point_to_point"(%arg0) {{{.*}}receiver_coord = array<i64: 0, 0>, sender_coord = array<i64: 0, 1>}
  // CHECK: [[B:%[0-9]+]] = "ttnn.point_to_point"([[C]], [[A]]) {{{.*}}receiver_coord = array<i64: 1, 0>, sender_coord = array<i64: 0, 0>}
  // CHECK: [[D:%[0-9]+]] = "ttnn.point_to_point"(%arg0, [[B]]) {{{.*}}receiver_coord = array<i64: 0, 0>, sender_coord = array<i64: 1, 0>}
  // CHECK: [[E:%[0-9]+]] = "ttnn.point_to_point"([[Z]], [[D]]) {{{.*}}receiver_coord = array<i64: 1, 1>, sender_coord = array<i64: 1, 1>}
  // CHECK: return [[E]]
  %0 = "ttir.collective_permute"(%x) {source_target_pairs = array<i64: 0, 1, 1, 2, 2, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
}
