// RUN: %opt --step stablehlo-to-ttir %s | %check

// A composite with a known name becomes its op, and its decomposition is dropped.
// CHECK-LABEL: @main(
// CHECK-NOT: @body
func.func @main(%x: tensor<2x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  // CHECK: "ttir.layer_norm"(%arg0, %arg1, %arg2) {epsilon = 9.99{{.*}} : f32, operandSegmentSizes = array<i32: 1, 1, 1>}
  %0 = stablehlo.composite "tenstorrent.layer_norm" %x, %w, %b {
    composite_attributes = {epsilon = 1.0e-05 : f64}, decomposition = @body
  } : (tensor<2x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  // CHECK: "ttir.gelu"
  %1 = stablehlo.composite "tenstorrent.gelu" %0 {decomposition = @unary} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}
func.func private @body(%x: tensor<2x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x8xf32> {
  return %x : tensor<2x8xf32>
}
func.func private @unary(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  return %x : tensor<2x8xf32>
}

// -----

// Images get the form that TTNN takes, and both results are brought back to the form of StableHLO.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x4x9x8xf32>) -> (tensor<2x4x5x4xf32>, tensor<2x4x5x4xi64>) {
  // CHECK: [[FLAT:%[0-9]+]] = "ttir.reshape"({{.*}}) {shape = array<i64: 1, 1, 144, 4>}
  // CHECK: [[P:%[0-9]+]]:2 = "ttir.max_pool2d_with_indices"([[FLAT]]) {{{.*}}padding = array<i64: 1, 0, 1, 0>
  // CHECK-SAME: -> (tensor<1x1x40x4xf32>, tensor<1x1x40x4xi32>)
  // CHECK: "ttir.reshape"([[P]]#0) {shape = array<i64: 2, 5, 4, 4>}
  // CHECK: "ttir.reshape"([[P]]#1) {shape = array<i64: 2, 5, 4, 4>}
  %0:2 = stablehlo.composite "tenstorrent.max_pool2d_with_indices" %x {
    composite_attributes = {kernel_size = array<i64: 3, 2>, stride = array<i64: 2, 2>, padding = array<i64: 1, 0>, dilation = array<i64: 1, 1>},
    decomposition = @body
  } : (tensor<2x4x9x8xf32>) -> (tensor<2x4x5x4xf32>, tensor<2x4x5x4xi64>)
  return %0#0, %0#1 : tensor<2x4x5x4xf32>, tensor<2x4x5x4xi64>
}
func.func private @body(%x: tensor<2x4x9x8xf32>) -> (tensor<2x4x5x4xf32>, tensor<2x4x5x4xi64>) {
  %0 = stablehlo.constant dense<0.0> : tensor<2x4x5x4xf32>
  %1 = stablehlo.constant dense<0> : tensor<2x4x5x4xi64>
  return %0, %1 : tensor<2x4x5x4xf32>, tensor<2x4x5x4xi64>
}

// -----

// The forms of tt-xla: attributes may be missing, and a form without a rule is replaced by its decomposition.
// CHECK-LABEL: @main(
// CHECK: %[[T:.*]]:2 = "ttir.topk"(%arg0) {dim = 1 : i64, k = 2 : i64, largest = true, sorted = false}
// CHECK: "ttir.argmax"(%arg0) {dim_arg = array<i64: 1>, keep_dim = true}
// CHECK: "ttir.layer_norm"(%arg0, %arg1)
// CHECK: %[[X:.*]] = "ttir.neg"(%arg0)
// CHECK: return %[[T]]#1, %{{.*}}, %{{.*}}, %[[X]]
func.func @main(%x: tensor<2x8xf32>, %w: tensor<8xf32>) -> (tensor<2x2xi64>, tensor<2x1xi64>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %0 = stablehlo.composite "tenstorrent.topk_indices" %x {composite_attributes = {k = 2 : i64}, decomposition = @indices}
    : (tensor<2x8xf32>) -> tensor<2x2xi64>
  %1 = stablehlo.composite "tenstorrent.argmax" %x {composite_attributes = {dim = -1 : i64, keepdim = true}, decomposition = @index}
    : (tensor<2x8xf32>) -> tensor<2x1xi64>
  %2 = stablehlo.composite "tenstorrent.layer_norm" %x, %w {
    composite_attributes = {epsilon = 1.0e-05 : f32, normalized_shape = dense<8> : tensor<1xi64>}, decomposition = @norm
  } : (tensor<2x8xf32>, tensor<8xf32>) -> tensor<2x8xf32>
  %3 = stablehlo.composite "tenstorrent.layer_norm" %x {
    composite_attributes = {epsilon = 1.0e-05 : f32, normalized_shape = dense<[2, 8]> : tensor<2xi64>}, decomposition = @all
  } : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %0, %1, %2, %3 : tensor<2x2xi64>, tensor<2x1xi64>, tensor<2x8xf32>, tensor<2x8xf32>
}
func.func private @indices(%x: tensor<2x8xf32>) -> tensor<2x2xi64> {
  %0 = stablehlo.constant dense<0> : tensor<2x2xi64>
  return %0 : tensor<2x2xi64>
}
func.func private @index(%x: tensor<2x8xf32>) -> tensor<2x1xi64> {
  %0 = stablehlo.constant dense<0> : tensor<2x1xi64>
  return %0 : tensor<2x1xi64>
}
func.func private @norm(%x: tensor<2x8xf32>, %w: tensor<8xf32>) -> tensor<2x8xf32> {
  return %x : tensor<2x8xf32>
}
func.func private @all(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = stablehlo.negate %x : tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// -----

// A composite with the name, operands and attributes of a TTIR op becomes that op. With another attribute, or another
// number of operands, it becomes its decomposition.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  // CHECK: "ttir.cumsum"(%arg0) {dim = 1 : i64}
  %0 = stablehlo.composite "tenstorrent.cumsum" %x {composite_attributes = {dim = 1 : i64}, decomposition = @one} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  // CHECK-NEXT: "ttir.neg"
  %1 = stablehlo.composite "tenstorrent.cumsum" %0 {composite_attributes = {dim = 1 : i64, reverse = true}, decomposition = @one} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  // CHECK-NEXT: "ttir.neg"
  %2 = stablehlo.composite "tenstorrent.cumsum" %1 {decomposition = @one} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  // CHECK-NEXT: "ttir.maximum"
  %3 = stablehlo.composite "tenstorrent.cumsum" %2, %x {composite_attributes = {dim = 1 : i64}, decomposition = @two} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}
func.func private @one(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = stablehlo.negate %x : tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
func.func private @two(%x: tensor<2x8xf32>, %y: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %0 = stablehlo.maximum %x, %y : tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
