// RUN: %opt --step stablehlo-to-ttir %s | %check

// An update of a cache: the start is clamped to [0, 8 - 2].
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x8x4xf32>, %u: tensor<1x2x4xf32>, %at: tensor<i64>) -> tensor<1x8x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  // CHECK: "ttir.maximum"(%arg2,
  // CHECK: [[LATEST:%[0-9]+]] = "ttir.full"() {fill_value = 6 : i64
  // CHECK: "ttir.minimum"({{.*}}, [[LATEST]])
  // CHECK: "ttir.scatter"(%arg0, {{.*}}, %arg1) {dim = 1 : i64
  %0 = stablehlo.dynamic_update_slice %x, %u, %zero, %at, %zero
    : (tensor<1x8x4xf32>, tensor<1x2x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x8x4xf32>
  return %0 : tensor<1x8x4xf32>
}

// -----

// A dynamic slice of rows becomes an embedding of consecutive row numbers.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<8x4xf32>, %at: tensor<i64>) -> tensor<2x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i64>
  // CHECK: [[LATEST:%[0-9]+]] = "ttir.full"() {fill_value = 6 : i64
  // CHECK: [[START:%[0-9]+]] = "ttir.minimum"({{.*}}, [[LATEST]])
  // CHECK: [[COUNT:%[0-9]+]] = "ttir.arange"() {{{.*}}end = 2 : i64, start = 0 : i64
  // CHECK: [[PLACES:%[0-9]+]] = "ttir.add"([[COUNT]],
  // CHECK: "ttir.embedding"([[PLACES]],
  %0 = stablehlo.dynamic_slice %x, %at, %zero, sizes = [2, 4]
    : (tensor<8x4xf32>, tensor<i64>, tensor<i64>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// If two dimensions have a start, rows are read, changed and written back.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<8x8xf32>, %u: tensor<2x2xf32>, %at: tensor<i64>) -> tensor<8x8xf32> {
  // CHECK: [[ROWS:%[0-9]+]] = "ttir.embedding"(
  // CHECK: [[NEW:%[0-9]+]] = "ttir.scatter"({{.*}}, %arg1) {dim = 1 : i64
  // CHECK: "ttir.scatter"(%arg0, {{.*}}, [[NEW]]) {dim = 0 : i64
  %0 = stablehlo.dynamic_update_slice %x, %u, %at, %at
    : (tensor<8x8xf32>, tensor<2x2xf32>, tensor<i64>, tensor<i64>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
