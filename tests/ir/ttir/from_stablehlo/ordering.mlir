// RUN: %opt --step stablehlo-to-ttir %s | %check

// A sort of values with their positions, which is torch-mlir's form of sort and topk.
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

// Another operand is gathered by the positions of the sorted one.
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
// CHECK: %[[S:.*]]:2 = "ttir.sort"(%arg0) {descending = true, dim = 1 : i64, stable = true}
// CHECK: "ttir.slice_static"(%[[S]]#0) {begins = array<i64: 0, 0>, ends = array<i64: 2, 2>
// CHECK: "ttir.slice_static"(%[[S]]#1)
func.func @main(%x: tensor<2x5xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>) {
  %0:2 = chlo.top_k(%x, k = 2) : tensor<2x5xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)
  return %0#0, %0#1 : tensor<2x2xf32>, tensor<2x2xi32>
}

// -----

// JAX's comparison makes both zeros equal. A sort by two keys sorts by the second key first.
// CHECK-LABEL: @main(
// CHECK: %{{.*}}:2 = "ttir.sort"(%arg1) {descending = true, dim = 0 : i64, stable = true}
// CHECK: %[[FIRST:.*]] = "ttir.gather"(%arg0, %[[BY:.*]]#1) {dim = 0 : i64}
// CHECK: %[[S:.*]]:2 = "ttir.sort"(%[[FIRST]]) {descending = false, dim = 0 : i64, stable = true}
// CHECK: %[[ORDER:.*]] = "ttir.gather"(%{{.*}}#1, %[[S]]#1)
// CHECK: %[[OTHER:.*]] = "ttir.gather"(%arg1, %[[ORDER]])
// CHECK: return %[[S]]#0, %[[OTHER]]
func.func @main(%x: tensor<4xf32>, %y: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %0:2 = "stablehlo.sort"(%x, %y) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.compare EQ, %a, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.select %1, %zero, %a : tensor<i1>, tensor<f32>
    %3 = stablehlo.compare EQ, %b, %zero, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %4 = stablehlo.select %3, %zero, %b : tensor<i1>, tensor<f32>
    %5 = stablehlo.compare LT, %2, %4, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %6 = stablehlo.compare EQ, %2, %4, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %7 = stablehlo.compare GT, %c, %d, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %8 = stablehlo.and %6, %7 : tensor<i1>
    %9 = stablehlo.or %5, %8 : tensor<i1>
    stablehlo.return %9 : tensor<i1>
  }) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
}
