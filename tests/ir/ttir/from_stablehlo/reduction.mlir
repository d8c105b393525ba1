// RUN: %opt --step stablehlo-to-ttir %s | %check

// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x5xf32>, %m: tensor<4x5xi1>, %n: tensor<4x5xi64>)
    -> (tensor<f32>, tensor<4xf32>, tensor<4xi1>, tensor<5xi64>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %true = stablehlo.constant dense<true> : tensor<i1>
  %most = stablehlo.constant dense<9223372036854775807> : tensor<i64>
  // CHECK: "ttir.sum"(%arg0) {dim_arg = array<i64: 0, 1>, keep_dim = false}
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<4x5xf32>, tensor<f32>) -> tensor<f32>
  // CHECK: "ttir.max"(%arg0) {dim_arg = array<i64: 1>
  %1 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
    : (tensor<4x5xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK: "ttir.min"(%arg1) {{.*}} -> tensor<4xbf16>
  %2 = stablehlo.reduce(%m init: %true) applies stablehlo.and across dimensions = [1]
    : (tensor<4x5xi1>, tensor<i1>) -> tensor<4xi1>
  // CHECK: "ttir.min"(%arg2) {{.*}} -> tensor<5xi32>
  %3 = stablehlo.reduce(%n init: %most) applies stablehlo.minimum across dimensions = [0]
    : (tensor<4x5xi64>, tensor<i64>) -> tensor<5xi64>
  return %0, %1, %2, %3 : tensor<f32>, tensor<4xf32>, tensor<4xi1>, tensor<5xi64>
}

// -----

// A reduction to a maximum and its position.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x5xf32>) -> (tensor<4xf32>, tensor<4xi64>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %count = stablehlo.iota dim = 1 : tensor<4x5xi64>
  // CHECK: "ttir.max"(%arg0) {dim_arg = array<i64: 1>
  // CHECK: "ttir.argmax"(%arg0) {dim_arg = array<i64: 1>{{.*}} -> tensor<4xi32>
  %1:2 = stablehlo.reduce(%x init: %low), (%count init: %zero) across dimensions = [1]
    : (tensor<4x5xf32>, tensor<4x5xi64>, tensor<f32>, tensor<i64>) -> (tensor<4xf32>, tensor<4xi64>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i64>, %j: tensor<i64>) {
      %larger = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %v = stablehlo.select %larger, %a, %b : tensor<i1>, tensor<f32>
      %same = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %first = stablehlo.minimum %i, %j : tensor<i64>
      %k = stablehlo.select %larger, %i, %j : tensor<i1>, tensor<i64>
      %at = stablehlo.select %same, %first, %k : tensor<i1>, tensor<i64>
      stablehlo.return %v, %at : tensor<f32>, tensor<i64>
    }
  return %1#0, %1#1 : tensor<4xf32>, tensor<4xi64>
}
