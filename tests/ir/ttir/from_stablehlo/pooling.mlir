// RUN: %opt --step stablehlo-to-ttir %s | %check

// StableHLO's padding is top, bottom, left, right. The op's padding is top, left, bottom, right.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x3x8x6xf32>) -> tensor<1x3x4x3xf32> {
  %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
  // CHECK: "ttir.max_pool2d"({{.*}}) {batch_size = 1 : i64, channels = 3 : i64
  // CHECK-SAME: kernel_size = array<i64: 3, 3>, padding = array<i64: 1, 0, 0, 1>, stride = array<i64: 2, 2>
  // CHECK-SAME: -> tensor<1x1x12x3xf32>
  %0 = "stablehlo.reduce_window"(%x, %init) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 2, 2>, padding = dense<[[0, 0], [0, 0], [1, 0], [0, 1]]> : tensor<4x2xi64>}
    : (tensor<1x3x8x6xf32>, tensor<f32>) -> tensor<1x3x4x3xf32>
  return %0 : tensor<1x3x4x3xf32>
}

// -----

// A sum of windows becomes an average times the size of the window.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x3x8x6xf32>) -> tensor<1x3x4x3xf32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK: [[MEAN:%[0-9]+]] = "ttir.avg_pool2d"(
  // CHECK: [[AREA:%[0-9]+]] = "ttir.full"() {fill_value = 4.0
  // CHECK: "ttir.multiply"([[MEAN]], [[AREA]])
  %0 = "stablehlo.reduce_window"(%x, %init) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}
    : (tensor<1x3x8x6xf32>, tensor<f32>) -> tensor<1x3x4x3xf32>
  return %0 : tensor<1x3x4x3xf32>
}

// -----

// With one spatial dimension, images get the height one.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x8xf32>) -> tensor<2x3x4xf32> {
  %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
  // CHECK: "ttir.max_pool2d"({{.*}} input_height = 1 : i64, input_width = 8 : i64, kernel_size = array<i64: 1, 2>
  // CHECK: "ttir.reshape"({{.*}}) {shape = array<i64: 2, 3, 4>}
  %0 = "stablehlo.reduce_window"(%x, %init) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {window_dimensions = array<i64: 1, 1, 2>, window_strides = array<i64: 1, 1, 2>}
    : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----

// A window over all elements before each one becomes a cumulative sum, also beside dimensions of size one.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x5xf32>) -> tensor<1x5xf32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK: "ttir.cumsum"(%arg0) {dim = 1 : i64}
  %0 = "stablehlo.reduce_window"(%x, %init) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {window_dimensions = array<i64: 1, 5>, padding = dense<[[0, 0], [4, 0]]> : tensor<2x2xi64>}
    : (tensor<1x5xf32>, tensor<f32>) -> tensor<1x5xf32>
  return %0 : tensor<1x5xf32>
}

// -----

// Windows over three dimensions become two poolings. Padding of more than half a window becomes a pad.
// CHECK-LABEL: @main(
// CHECK: %[[PADDED:.*]] = "ttir.pad"(%arg0) {padding = array<i64: 0, 0, 2, 0, 0, 0, 0, 0>
// CHECK: "ttir.permute"(%[[PADDED]]) {permutation = array<i64: 0, 3, 1, 2>}
// CHECK: "ttir.max_pool2d"({{.*}}) {batch_size = 1 : i64, channels = 3 : i64{{.*}}kernel_size = array<i64: 3, 2>
// CHECK: "ttir.max_pool2d"({{.*}}kernel_size = array<i64: 1, 2>
func.func @main(%x: tensor<1x4x6x3xf32>) -> tensor<1x4x5x2xf32> {
  %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %init) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {window_dimensions = array<i64: 1, 3, 2, 2>, padding = dense<[[0, 0], [2, 0], [0, 0], [0, 0]]> : tensor<4x2xi64>}
    : (tensor<1x4x6x3xf32>, tensor<f32>) -> tensor<1x4x5x2xf32>
  return %0 : tensor<1x4x5x2xf32>
}

// -----

// The minima of all later elements are computed in steps: first of two elements, then of four.
// CHECK-LABEL: @main(
// CHECK: %[[TWO:.*]] = "ttir.minimum"({{.*}}) : (tensor<3xi32>, tensor<3xi32>)
// CHECK: %[[PAIRS:.*]] = "ttir.concat"(%[[TWO]], {{.*}}) {dim = 0
// CHECK: %[[FOUR:.*]] = "ttir.minimum"({{.*}}) : (tensor<2xi32>, tensor<2xi32>)
// CHECK: "ttir.concat"(%[[FOUR]], {{.*}}) {dim = 0
func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  %init = stablehlo.constant dense<2147483647> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %init) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %c = stablehlo.minimum %a, %b : tensor<i32>
    stablehlo.return %c : tensor<i32>
  }) {window_dimensions = array<i64: 4>, padding = dense<[[0, 3]]> : tensor<1x2xi64>}
    : (tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}
