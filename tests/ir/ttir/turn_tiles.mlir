// RUN: %opt --step turn-tiles %s | %check

// The first 16 of 64 columns are turned: for the others, the cosine is 1 and the sine 0.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xbf16>, %y: tensor<2x3x5x64xbf16>, %cos: tensor<1x1x5x16xbf16>, %sin: tensor<1x1x5x16xbf16>) -> tensor<2x3x5x64xbf16> {
  // CHECK-NEXT: [[ONE:%[0-9]+]] = "ttir.full"() {fill_value = 1.000000e+00 : f64, shape = array<i64: 1, 1, 5, 48>}
  // CHECK-NEXT: [[C:%[0-9]+]] = "ttir.concat"(%arg2, [[ONE]])
  // CHECK-NEXT: [[ZERO:%[0-9]+]] = "ttir.full"() {fill_value = 0.000000e+00 : f64, shape = array<i64: 1, 1, 5, 48>}
  // CHECK-NEXT: [[S:%[0-9]+]] = "ttir.concat"(%arg3, [[ZERO]])
  // CHECK-NEXT: [[M:%[0-9]+]] = "ttir.constant"() {{.*}} -> tensor<1x1x32x32xbf16>
  // CHECK-NEXT: "ttir.rotary_embedding_llama"(%arg0, [[C]], [[S]], [[M]])
  // CHECK-NEXT: return
  %part = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xbf16>) -> tensor<2x3x5x16xbf16>
  %rest = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xbf16>) -> tensor<2x3x5x48xbf16>
  %low = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x16xbf16>) -> tensor<2x3x5x8xbf16>
  %high = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 8>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x16xbf16>) -> tensor<2x3x5x8xbf16>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x8xbf16>) -> tensor<2x3x5x8xbf16>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x8xbf16>, tensor<2x3x5x8xbf16>) -> tensor<2x3x5x16xbf16>
  %0 = "ttir.multiply"(%part, %cos) : (tensor<2x3x5x16xbf16>, tensor<1x1x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x16xbf16>, tensor<1x1x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x16xbf16>, tensor<2x3x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %3 = "ttir.concat"(%2, %rest) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x16xbf16>, tensor<2x3x5x48xbf16>) -> tensor<2x3x5x64xbf16>
  return %3 : tensor<2x3x5x64xbf16>
}

// -----

// All 32 columns are turned, with tables of two dimensions.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x32xbf16>, %y: tensor<2x3x5x32xbf16>, %cos: tensor<5x32xbf16>, %sin: tensor<5x32xbf16>) -> tensor<2x3x5x32xbf16> {
  // CHECK: [[C:%[0-9]+]] = "ttir.reshape"(%arg2) {shape = array<i64: 1, 1, 5, 32>}
  // CHECK: [[S:%[0-9]+]] = "ttir.reshape"(%arg3)
  // CHECK: "ttir.rotary_embedding_llama"(%arg0, [[C]], [[S]], 
  %low = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x32xbf16>) -> tensor<2x3x5x16xbf16>
  %high = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x32xbf16>) -> tensor<2x3x5x16xbf16>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x16xbf16>, tensor<2x3x5x16xbf16>) -> tensor<2x3x5x32xbf16>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x32xbf16>, tensor<5x32xbf16>) -> tensor<2x3x5x32xbf16>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x32xbf16>, tensor<5x32xbf16>) -> tensor<2x3x5x32xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x32xbf16>, tensor<2x3x5x32xbf16>) -> tensor<2x3x5x32xbf16>
  return %2 : tensor<2x3x5x32xbf16>
}

// -----

// The library does not take float32.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xf32>, %y: tensor<2x3x5x64xf32>, %cos: tensor<1x1x5x16xf32>, %sin: tensor<1x1x5x16xf32>) -> tensor<2x3x5x64xf32> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %part = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x16xf32>
  %rest = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xf32>) -> tensor<2x3x5x48xf32>
  %low = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x16xf32>) -> tensor<2x3x5x8xf32>
  %high = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 8>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x16xf32>) -> tensor<2x3x5x8xf32>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x8xf32>) -> tensor<2x3x5x8xf32>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x8xf32>, tensor<2x3x5x8xf32>) -> tensor<2x3x5x16xf32>
  %0 = "ttir.multiply"(%part, %cos) : (tensor<2x3x5x16xf32>, tensor<1x1x5x16xf32>) -> tensor<2x3x5x16xf32>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x16xf32>, tensor<1x1x5x16xf32>) -> tensor<2x3x5x16xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x16xf32>, tensor<2x3x5x16xf32>) -> tensor<2x3x5x16xf32>
  %3 = "ttir.concat"(%2, %rest) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x16xf32>, tensor<2x3x5x48xf32>) -> tensor<2x3x5x64xf32>
  return %3 : tensor<2x3x5x64xf32>
}

// -----

// More columns are turned than a tile has.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x128xbf16>, %y: tensor<2x3x5x128xbf16>, %cos: tensor<1x1x5x48xbf16>, %sin: tensor<1x1x5x48xbf16>) -> tensor<2x3x5x128xbf16> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %part = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 48>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x128xbf16>) -> tensor<2x3x5x48xbf16>
  %rest = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 48>, ends = array<i64: 2, 3, 5, 128>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x128xbf16>) -> tensor<2x3x5x80xbf16>
  %low = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 24>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x48xbf16>) -> tensor<2x3x5x24xbf16>
  %high = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 24>, ends = array<i64: 2, 3, 5, 48>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x48xbf16>) -> tensor<2x3x5x24xbf16>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x24xbf16>) -> tensor<2x3x5x24xbf16>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x24xbf16>, tensor<2x3x5x24xbf16>) -> tensor<2x3x5x48xbf16>
  %0 = "ttir.multiply"(%part, %cos) : (tensor<2x3x5x48xbf16>, tensor<1x1x5x48xbf16>) -> tensor<2x3x5x48xbf16>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x48xbf16>, tensor<1x1x5x48xbf16>) -> tensor<2x3x5x48xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x48xbf16>, tensor<2x3x5x48xbf16>) -> tensor<2x3x5x48xbf16>
  %3 = "ttir.concat"(%2, %rest) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x48xbf16>, tensor<2x3x5x80xbf16>) -> tensor<2x3x5x128xbf16>
  return %3 : tensor<2x3x5x128xbf16>
}

// -----

// If heads are not whole tiles, the first tile is turned by itself.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x80xbf16>, %y: tensor<2x3x5x80xbf16>, %cos: tensor<1x1x5x32xbf16>, %sin: tensor<1x1x5x32xbf16>) -> tensor<2x3x5x80xbf16> {
  // CHECK: [[X:%[0-9]+]] = "ttir.slice_static"(%arg0)
  // CHECK: [[Y:%[0-9]+]] = "ttir.rotary_embedding_llama"([[X]], %arg2, %arg3, {{.*}} -> tensor<2x3x5x32xbf16>
  // CHECK: "ttir.concat"([[Y]], {{.*}} -> tensor<2x3x5x80xbf16>
  %part = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x80xbf16>) -> tensor<2x3x5x32xbf16>
  %rest = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 32>, ends = array<i64: 2, 3, 5, 80>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x80xbf16>) -> tensor<2x3x5x48xbf16>
  %low = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x32xbf16>) -> tensor<2x3x5x16xbf16>
  %high = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 3, 5, 32>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x32xbf16>) -> tensor<2x3x5x16xbf16>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x16xbf16>, tensor<2x3x5x16xbf16>) -> tensor<2x3x5x32xbf16>
  %0 = "ttir.multiply"(%part, %cos) : (tensor<2x3x5x32xbf16>, tensor<1x1x5x32xbf16>) -> tensor<2x3x5x32xbf16>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x32xbf16>, tensor<1x1x5x32xbf16>) -> tensor<2x3x5x32xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x32xbf16>, tensor<2x3x5x32xbf16>) -> tensor<2x3x5x32xbf16>
  %3 = "ttir.concat"(%2, %rest) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32xbf16>, tensor<2x3x5x48xbf16>) -> tensor<2x3x5x80xbf16>
  return %3 : tensor<2x3x5x80xbf16>
}

// -----

// The heads are too wide for the library.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x288xbf16>, %y: tensor<2x3x5x288xbf16>, %cos: tensor<1x1x5x16xbf16>, %sin: tensor<1x1x5x16xbf16>) -> tensor<2x3x5x288xbf16> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %part = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x288xbf16>) -> tensor<2x3x5x16xbf16>
  %rest = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 3, 5, 288>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x288xbf16>) -> tensor<2x3x5x272xbf16>
  %low = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x16xbf16>) -> tensor<2x3x5x8xbf16>
  %high = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 8>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x16xbf16>) -> tensor<2x3x5x8xbf16>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x8xbf16>) -> tensor<2x3x5x8xbf16>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x8xbf16>, tensor<2x3x5x8xbf16>) -> tensor<2x3x5x16xbf16>
  %0 = "ttir.multiply"(%part, %cos) : (tensor<2x3x5x16xbf16>, tensor<1x1x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x16xbf16>, tensor<1x1x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x16xbf16>, tensor<2x3x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %3 = "ttir.concat"(%2, %rest) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x16xbf16>, tensor<2x3x5x272xbf16>) -> tensor<2x3x5x288xbf16>
  return %3 : tensor<2x3x5x288xbf16>
}

// -----

// The other columns come from another tensor.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xbf16>, %y: tensor<2x3x5x64xbf16>, %cos: tensor<1x1x5x16xbf16>, %sin: tensor<1x1x5x16xbf16>) -> tensor<2x3x5x64xbf16> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %part = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xbf16>) -> tensor<2x3x5x16xbf16>
  %rest = "ttir.slice_static"(%y) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xbf16>) -> tensor<2x3x5x48xbf16>
  %low = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x16xbf16>) -> tensor<2x3x5x8xbf16>
  %high = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 8>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x16xbf16>) -> tensor<2x3x5x8xbf16>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x8xbf16>) -> tensor<2x3x5x8xbf16>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x8xbf16>, tensor<2x3x5x8xbf16>) -> tensor<2x3x5x16xbf16>
  %0 = "ttir.multiply"(%part, %cos) : (tensor<2x3x5x16xbf16>, tensor<1x1x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x16xbf16>, tensor<1x1x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x16xbf16>, tensor<2x3x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %3 = "ttir.concat"(%2, %rest) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x16xbf16>, tensor<2x3x5x48xbf16>) -> tensor<2x3x5x64xbf16>
  return %3 : tensor<2x3x5x64xbf16>
}

// -----

// The other columns come first.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xbf16>, %y: tensor<2x3x5x64xbf16>, %cos: tensor<1x1x5x16xbf16>, %sin: tensor<1x1x5x16xbf16>) -> tensor<2x3x5x64xbf16> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %part = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xbf16>) -> tensor<2x3x5x16xbf16>
  %rest = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xbf16>) -> tensor<2x3x5x48xbf16>
  %low = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x16xbf16>) -> tensor<2x3x5x8xbf16>
  %high = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 8>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x16xbf16>) -> tensor<2x3x5x8xbf16>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x8xbf16>) -> tensor<2x3x5x8xbf16>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x8xbf16>, tensor<2x3x5x8xbf16>) -> tensor<2x3x5x16xbf16>
  %0 = "ttir.multiply"(%part, %cos) : (tensor<2x3x5x16xbf16>, tensor<1x1x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x16xbf16>, tensor<1x1x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x16xbf16>, tensor<2x3x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %3 = "ttir.concat"(%rest, %2) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x48xbf16>, tensor<2x3x5x16xbf16>) -> tensor<2x3x5x64xbf16>
  return %3 : tensor<2x3x5x64xbf16>
}

// -----

// There is a table for each batch.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xbf16>, %y: tensor<2x3x5x64xbf16>, %cos: tensor<2x1x5x16xbf16>, %sin: tensor<2x1x5x16xbf16>) -> tensor<2x3x5x64xbf16> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %part = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xbf16>) -> tensor<2x3x5x16xbf16>
  %rest = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 16>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x64xbf16>) -> tensor<2x3x5x48xbf16>
  %low = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x16xbf16>) -> tensor<2x3x5x8xbf16>
  %high = "ttir.slice_static"(%part) {begins = array<i64: 0, 0, 0, 8>, ends = array<i64: 2, 3, 5, 16>, step = array<i64: 1, 1, 1, 1>} : (tensor<2x3x5x16xbf16>) -> tensor<2x3x5x8xbf16>
  %minus = "ttir.neg"(%high) : (tensor<2x3x5x8xbf16>) -> tensor<2x3x5x8xbf16>
  %turned = "ttir.concat"(%minus, %low) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x8xbf16>, tensor<2x3x5x8xbf16>) -> tensor<2x3x5x16xbf16>
  %0 = "ttir.multiply"(%part, %cos) : (tensor<2x3x5x16xbf16>, tensor<2x1x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x16xbf16>, tensor<2x1x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x16xbf16>, tensor<2x3x5x16xbf16>) -> tensor<2x3x5x16xbf16>
  %3 = "ttir.concat"(%2, %rest) {dim = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x16xbf16>, tensor<2x3x5x48xbf16>) -> tensor<2x3x5x64xbf16>
  return %3 : tensor<2x3x5x64xbf16>
}

// -----

// Neighbouring columns are turned. They are in one tile, in heads of any width.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xbf16>, %cos: tensor<1x1x5x64xbf16>, %sin: tensor<1x1x5x64xbf16>) -> tensor<2x3x5x64xbf16> {
  // CHECK-NEXT: [[M:%[0-9]+]] = "ttir.constant"()
  // CHECK-NEXT: "ttir.rotary_embedding_llama"(%arg0, %arg1, %arg2, [[M]])
  // CHECK-NEXT: return
  %even = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 2>} : (tensor<2x3x5x64xbf16>) -> tensor<2x3x5x32xbf16>
  %odd = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 1>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 2>} : (tensor<2x3x5x64xbf16>) -> tensor<2x3x5x32xbf16>
  %minus = "ttir.neg"(%odd) : (tensor<2x3x5x32xbf16>) -> tensor<2x3x5x32xbf16>
  %a = "ttir.reshape"(%minus) {shape = array<i64: 2, 3, 5, 32, 1>} : (tensor<2x3x5x32xbf16>) -> tensor<2x3x5x32x1xbf16>
  %b = "ttir.reshape"(%even) {shape = array<i64: 2, 3, 5, 32, 1>} : (tensor<2x3x5x32xbf16>) -> tensor<2x3x5x32x1xbf16>
  %both = "ttir.concat"(%a, %b) {dim = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32x1xbf16>, tensor<2x3x5x32x1xbf16>) -> tensor<2x3x5x32x2xbf16>
  %turned = "ttir.reshape"(%both) {shape = array<i64: 2, 3, 5, 64>} : (tensor<2x3x5x32x2xbf16>) -> tensor<2x3x5x64xbf16>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xbf16>, tensor<1x1x5x64xbf16>) -> tensor<2x3x5x64xbf16>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xbf16>, tensor<1x1x5x64xbf16>) -> tensor<2x3x5x64xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xbf16>, tensor<2x3x5x64xbf16>) -> tensor<2x3x5x64xbf16>
  return %2 : tensor<2x3x5x64xbf16>
}

// -----

// Neighbouring columns are not exchanged.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3x5x64xbf16>, %cos: tensor<1x1x5x64xbf16>, %sin: tensor<1x1x5x64xbf16>) -> tensor<2x3x5x64xbf16> {
  // CHECK-NOT: rotary_embedding
  // CHECK: return
  %even = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 2>} : (tensor<2x3x5x64xbf16>) -> tensor<2x3x5x32xbf16>
  %odd = "ttir.slice_static"(%x) {begins = array<i64: 0, 0, 0, 1>, ends = array<i64: 2, 3, 5, 64>, step = array<i64: 1, 1, 1, 2>} : (tensor<2x3x5x64xbf16>) -> tensor<2x3x5x32xbf16>
  %minus = "ttir.neg"(%even) : (tensor<2x3x5x32xbf16>) -> tensor<2x3x5x32xbf16>
  %a = "ttir.reshape"(%minus) {shape = array<i64: 2, 3, 5, 32, 1>} : (tensor<2x3x5x32xbf16>) -> tensor<2x3x5x32x1xbf16>
  %b = "ttir.reshape"(%odd) {shape = array<i64: 2, 3, 5, 32, 1>} : (tensor<2x3x5x32xbf16>) -> tensor<2x3x5x32x1xbf16>
  %both = "ttir.concat"(%a, %b) {dim = 4 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3x5x32x1xbf16>, tensor<2x3x5x32x1xbf16>) -> tensor<2x3x5x32x2xbf16>
  %turned = "ttir.reshape"(%both) {shape = array<i64: 2, 3, 5, 64>} : (tensor<2x3x5x32x2xbf16>) -> tensor<2x3x5x64xbf16>
  %0 = "ttir.multiply"(%x, %cos) : (tensor<2x3x5x64xbf16>, tensor<1x1x5x64xbf16>) -> tensor<2x3x5x64xbf16>
  %1 = "ttir.multiply"(%turned, %sin) : (tensor<2x3x5x64xbf16>, tensor<1x1x5x64xbf16>) -> tensor<2x3x5x64xbf16>
  %2 = "ttir.add"(%0, %1) : (tensor<2x3x5x64xbf16>, tensor<2x3x5x64xbf16>) -> tensor<2x3x5x64xbf16>
  return %2 : tensor<2x3x5x64xbf16>
}
