// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// Positions must count along the reduced dimension; this iota counts along the other one.
// CHECK: error: stablehlo.reduce is not supported in stage stablehlo-to-ttir
func.func @main(%x: tensor<4x5xf32>) -> (tensor<4xf32>, tensor<4xi64>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %count = stablehlo.iota dim = 0 : tensor<4x5xi64>
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

// -----

// Positions must count along the reduced dimension; this broadcast column counts along the other one.
// CHECK: error: stablehlo.reduce is not supported in stage stablehlo-to-ttir
func.func @main(%x: tensor<5x5xf32>) -> (tensor<5xf32>, tensor<5xi32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %v = stablehlo.iota dim = 0 : tensor<5xi32>
  %column = stablehlo.reshape %v : (tensor<5xi32>) -> tensor<5x1xi32>
  %count = stablehlo.broadcast_in_dim %column, dims = [0, 1] : (tensor<5x1xi32>) -> tensor<5x5xi32>
  %1:2 = stablehlo.reduce(%x init: %low), (%count init: %zero) across dimensions = [1]
    : (tensor<5x5xf32>, tensor<5x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<5xf32>, tensor<5xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %larger = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %value = stablehlo.select %larger, %a, %b : tensor<i1>, tensor<f32>
      %at = stablehlo.select %larger, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %value, %at : tensor<f32>, tensor<i32>
    }
  return %1#0, %1#1 : tensor<5xf32>, tensor<5xi32>
}

// -----

// A reduction to the largest element and its position must start at the end of the type's range.
// CHECK: error: stablehlo.reduce is not supported in stage stablehlo-to-ttir
func.func @main(%x: tensor<5x5xf32>) -> (tensor<5xf32>, tensor<5xi32>) {
  %low = stablehlo.constant dense<0.0> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %v = stablehlo.iota dim = 0 : tensor<5xi32>
  %column = stablehlo.reshape %v : (tensor<5xi32>) -> tensor<1x5xi32>
  %count = stablehlo.broadcast_in_dim %column, dims = [0, 1] : (tensor<1x5xi32>) -> tensor<5x5xi32>
  %1:2 = stablehlo.reduce(%x init: %low), (%count init: %zero) across dimensions = [1]
    : (tensor<5x5xf32>, tensor<5x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<5xf32>, tensor<5xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %larger = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %value = stablehlo.select %larger, %a, %b : tensor<i1>, tensor<f32>
      %at = stablehlo.select %larger, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %value, %at : tensor<f32>, tensor<i32>
    }
  return %1#0, %1#1 : tensor<5xf32>, tensor<5xi32>
}

// -----

// The body must compute scalars: it is applied to each element of tensors.
// CHECK: error: stablehlo.reduce is not supported in stage stablehlo-to-ttir
func.func @main(%x: tensor<4xf32>, %i: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.reduce(%x init: %i) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    reducer(%a: tensor<f32>, %b: tensor<f32>) {
      %wide = stablehlo.reshape %a : (tensor<f32>) -> tensor<1xf32>
      %back = stablehlo.reshape %wide : (tensor<1xf32>) -> tensor<f32>
      %sum = stablehlo.add %back, %b : tensor<f32>
      stablehlo.return %sum : tensor<f32>
    }
  return %0 : tensor<f32>
}
