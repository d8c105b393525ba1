// RUN: %opt --step stablehlo-to-ttir %s | %check

// CHECK-LABEL: @main(
func.func @main(%a: tensor<2x3x4xf32>) -> (tensor<6x4xf32>, tensor<4x2x3xf32>, tensor<1x2x2xf32>) {
  // CHECK: "ttir.reshape"(%arg0) {shape = array<i64: 6, 4>}
  %0 = stablehlo.reshape %a : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  // CHECK: "ttir.permute"(%arg0) {permutation = array<i64: 2, 0, 1>}
  %1 = stablehlo.transpose %a, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  // CHECK: "ttir.slice_static"(%arg0) {begins = array<i64: 1, 0, 0>, ends = array<i64: 2, 3, 4>, step = array<i64: 1, 2, 2>}
  %2 = stablehlo.slice %a [1:2, 0:3:2, 0:4:2] : (tensor<2x3x4xf32>) -> tensor<1x2x2xf32>
  return %0, %1, %2 : tensor<6x4xf32>, tensor<4x2x3xf32>, tensor<1x2x2xf32>
}

// -----

// Dimensions are put in order, reshaped to the result's rank, and repeated. A splat becomes a full at once.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<3x2xf32>) -> (tensor<2x4x3xf32>, tensor<8xf32>) {
  // CHECK: [[ORDERED:%[0-9]+]] = "ttir.permute"(%arg0) {permutation = array<i64: 1, 0>}
  // CHECK: [[SPREAD:%[0-9]+]] = "ttir.reshape"([[ORDERED]]) {shape = array<i64: 2, 1, 3>}
  // CHECK: "ttir.broadcast"([[SPREAD]]) {broadcast_dimensions = array<i64: 1, 4, 1>}
  %0 = stablehlo.broadcast_in_dim %a, dims = [2, 0] : (tensor<3x2xf32>) -> tensor<2x4x3xf32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  // CHECK: "ttir.full"() {{.*}} -> tensor<8xf32>
  %1 = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<8xf32>
  return %0, %1 : tensor<2x4x3xf32>, tensor<8xf32>
}

// -----

// Negative padding becomes a slice, before the rest of the padding.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<4x6xf32>) -> (tensor<5x8xf32>, tensor<4x7xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK: "ttir.pad"(%arg0) {padding = array<i64: 1, 0, 0, 2>, value = 0.0
  %0 = stablehlo.pad %a, %zero, low = [1, 0], high = [0, 2], interior = [0, 0]
    : (tensor<4x6xf32>, tensor<f32>) -> tensor<5x8xf32>
  // CHECK: [[CROPPED:%[0-9]+]] = "ttir.slice_static"(%arg0) {begins = array<i64: 0, 1>, ends = array<i64: 4, 6>
  // CHECK: "ttir.pad"([[CROPPED]]) {padding = array<i64: 0, 0, 0, 2>
  %1 = stablehlo.pad %a, %zero, low = [0, -1], high = [0, 2], interior = [0, 0]
    : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x7xf32>
  return %0, %1 : tensor<5x8xf32>, tensor<4x7xf32>
}

// -----

// Interior padding becomes columns of padding; those after the last element are cut off.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<4xf32>) -> tensor<11xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK: [[COLUMN:%[0-9]+]] = "ttir.reshape"(%arg0) {shape = array<i64: 4, 1>}
  // CHECK: [[ROWS:%[0-9]+]] = "ttir.pad"([[COLUMN]]) {padding = array<i64: 0, 0, 0, 2>
  // CHECK: [[FLAT:%[0-9]+]] = "ttir.reshape"([[ROWS]]) {shape = array<i64: 12>}
  // CHECK: [[SPREAD:%[0-9]+]] = "ttir.slice_static"([[FLAT]]) {begins = array<i64: 0>, ends = array<i64: 10>
  // CHECK: "ttir.pad"([[SPREAD]]) {padding = array<i64: 1, 0>
  %0 = stablehlo.pad %a, %zero, low = [1], high = [0], interior = [2] : (tensor<4xf32>, tensor<f32>) -> tensor<11xf32>
  return %0 : tensor<11xf32>
}

// -----

// CHECK-LABEL: @main(
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x1xf32>) -> tensor<2x4xf32> {
  // CHECK: "ttir.concat"(%arg0, %arg1) {dim = 1 : i64
  %0 = stablehlo.concatenate %a, %b, dim = 1 : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// Padding of a scalar does nothing.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  // CHECK: return %arg0
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [], high = [], interior = [] : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
