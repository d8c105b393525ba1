// RUN: %opt --step fuse %s | %check

// x * cosine + concat(-x[..., half:], x[..., :half]) * sine
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<1x1x5x64xf32>, %sin: tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NEXT: "ttir.rotary_embedding"(%arg0, %arg1, %arg2)
  // CHECK-NEXT: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// The factors and terms have another order.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<1x1x5x64xf32>, %sin: tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NEXT: "ttir.rotary_embedding"(%arg0, %arg1, %arg2)
  // CHECK-NEXT: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%sin, %turned) : (tensor<1x1x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%cos, %x) : (tensor<1x1x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// The tables have two dimensions.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<5x64xf32>, %sin: tensor<5x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK: [[C:%[0-9]+]] = "ttir.reshape"(%arg1)
  // CHECK: [[S:%[0-9]+]] = "ttir.reshape"(%arg2)
  // CHECK: "ttir.rotary_embedding"(%arg0, [[C]], [[S]])
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xf32>, tensor<5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<5x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// The first half is negated.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<1x1x5x64xf32>, %sin: tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %minus = "ttir.neg"(%low) : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  %turned = "ttir.concat"(%minus, %high) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// The halves are not exchanged.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<1x1x5x64xf32>, %sin: tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %minus = "ttir.neg"(%low) : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  %turned = "ttir.concat"(%high, %minus) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// The second half is negated, but stays behind the first one.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<1x1x5x64xf32>, %sin: tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  %turned = "ttir.concat"(%low, %minus) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// Nothing is negated.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<1x1x5x64xf32>, %sin: tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  %turned = "ttir.concat"(%high, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// The parts are no halves.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<1x1x5x64xf32>, %sin: tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x16xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x48xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x48xf32>) -> tensor<2x3x5x48xf32>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x48xf32>, tensor<2x3x5x16xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// Heads are exchanged, and not columns.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<1x1x5x64xf32>, %sin: tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 1, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x1x5x64xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 1, 0, 0>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x2x5x64xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x2x5x64xf32>) -> tensor<2x2x5x64xf32>
  %turned = "ttir.concat"(%minus, %low) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x2x5x64xf32>, tensor<2x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// The second term is subtracted, and not added.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<1x1x5x64xf32>, %sin: tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.subtract"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// There is a table for each batch.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<2x1x5x64xf32>, %sin: tensor<2x1x5x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xf32>, tensor<2x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<2x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// There is a table for each head.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<1x3x5x64xf32>, %sin: tensor<1x3x5x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xf32>, tensor<1x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<1x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// The tables have one row, which is used for all positions.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<1x1x1x64xf32>, %sin: tensor<1x1x1x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xf32>, tensor<1x1x1x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<1x1x1x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// One table has another shape.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<1x1x5x64xf32>, %sin: tensor<1x1x1x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<1x1x1x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}

// -----

// The halves are not whole tiles.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x96xf32>, %cos: tensor<1x1x5x96xf32>, %sin: tensor<1x1x5x96xf32>) -> tensor<2x3x5x96xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 48>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x96xf32>) -> tensor<2x3x5x48xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 48>, ends = array<i64: 2, 3, 5, 96>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x96xf32>) -> tensor<2x3x5x48xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x48xf32>) -> tensor<2x3x5x48xf32>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x48xf32>, tensor<2x3x5x48xf32>) -> tensor<2x3x5x96xf32>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x96xf32>, tensor<1x1x5x96xf32>) -> tensor<2x3x5x96xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x96xf32>, tensor<1x1x5x96xf32>) -> tensor<2x3x5x96xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x96xf32>, tensor<2x3x5x96xf32>) -> tensor<2x3x5x96xf32>
  return %2 : tensor<2x3x5x96xf32>
}

// -----

// The value in the first term is not the value that is rotated.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %cos: tensor<1x1x5x64xf32>, %sin: tensor<1x1x5x64xf32>, %y: tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x32xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x32xf32>) -> tensor<2x3x5x32xf32>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xf32>, tensor<2x3x5x32xf32>) -> tensor<2x3x5x64xf32>
  %0 = "ttir.multiply"(%y, %cos) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xf32>, tensor<1x1x5x64xf32>) -> tensor<2x3x5x64xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xf32>, tensor<2x3x5x64xf32>) -> tensor<2x3x5x64xf32>
  return %2 : tensor<2x3x5x64xf32>
}
