// RUN: %opt --step canonicalize --expect-error %s | %check

func.func @main(%x: tensor<2x3xf32>) -> tensor<5xf32> {
  // CHECK: error: ttir.reshape: got [2, 3] cannot be reshaped to [5]
  %0 = "ttir.reshape"(%x) {shape = array<i64: 5>} : (tensor<2x3xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // CHECK: error: ttir.permute: got [1, 1] is no permutation of rank 2
  %0 = "ttir.permute"(%x) {permutation = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x4xf32>) -> tensor<2x3xf32> {
  // CHECK: error: ttir.add: got shapes [2, 3], [2, 4] do not broadcast
  %0 = "ttir.add"(%x, %y) : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: error: ttir.eq: got result tensor<2x3xf32>, expected tensor<2x3xbf16>
  %0 = "ttir.eq"(%x, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x3xf32>) -> tensor<2x6xf32> {
  // CHECK: error: ttir.concat: got [3, 3] and [2, 3] differ in more than dimension 1
  %0 = "ttir.concat"(%x, %y) {dim = 1 : i64, operandSegmentSizes = array<i32: 1,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0>} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>) -> tensor<2x2xf32> {
  // CHECK: error: ttir.slice_static: got slice 2 to 4 is not within size 3
  %0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 2>, ends = array<i64: 2, 4>, step = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  // CHECK: 'ttir.sum' op attribute "dim_arg" is expected but not provided
  %0 = "ttir.sum"(%x) {keep_dim = false} : (tensor<2x3xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
