// RUN: %opt --step stablehlo-to-ttir %s | %check

// Values with their positions, as torch-mlir writes sort and topk.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x9xf32>) -> (tensor<4x9xf32>, tensor<4x9xi64>) {
  %i = stablehlo.iota dim = 1 : tensor<4x9xi64>
  // CHECK: [[S:%[0-9]+]]:2 = "ttir.sort"(%arg0) {descending = true, dim = 1 : i64, stable = true} : (tensor<4x9xf32>) -> (tensor<4x9xf32>, tensor<4x9xi32>)
  // CHECK: return [[S]]#0, [[S]]#1
  %0:2 = "stablehlo.sort"(%x, %i) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i64>, %d: tensor<i64>):
    %gt = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %gt : tensor<i1>
  }) : (tensor<4x9xf32>, tensor<4x9xi64>) -> (tensor<4x9xf32>, tensor<4x9xi64>)
  return %0#0, %0#1 : tensor<4x9xf32>, tensor<4x9xi64>
}

// -----

// What goes with the sorted operand is gathered by the positions.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4xf32>, %key: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  // CHECK: [[S:%[0-9]+]]:2 = "ttir.sort"(%arg1) {descending = false, dim = 0 : i64, stable = false}
  // CHECK: [[G:%[0-9]+]] = "ttir.gather"(%arg0, [[S]]#1) {dim = 0 : i64}
  // CHECK: return [[G]], [[S]]#0
  %0:2 = "stablehlo.sort"(%x, %key) <{dimension = 0 : i64, is_stable = false}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %lt = stablehlo.compare LT, %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %lt : tensor<i1>
  }) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: "ttir.topk"(%arg0) {dim = 1 : i64, k = 2 : i64, largest = true, sorted = true}
func.func @main(%x: tensor<2x5xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>) {
  %0:2 = chlo.top_k(%x, k = 2) : tensor<2x5xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)
  return %0#0, %0#1 : tensor<2x2xf32>, tensor<2x2xi32>
}
