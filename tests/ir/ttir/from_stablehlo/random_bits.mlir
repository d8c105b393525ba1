// RUN: %opt --step stablehlo-to-ttir %s | %check

// Keys and counters are 32-bit words. The words of a bit cast to or from 64 bits are used directly.
// CHECK-LABEL: @main(
// CHECK: "ttir.bitcast_convert"(%arg0) {dtype = i32} : (tensor<2x2xui32>) -> tensor<2x2xi32>
// CHECK: "ttir.arange"() {{{.*}}end = 8
// CHECK: "ttir.full"() {fill_value = 466688986 : i64
// CHECK: "ttir.logical_left_shift"
// CHECK: "ttir.concat"({{.*}}) {dim = 1 {{.*}} : (tensor<2x1x4xi32>, tensor<2x1x4xi32>)
// CHECK: %[[STATE:.*]] = "ttir.bitcast_convert"({{.*}}) {dtype = ui32} : (tensor<2x2xi32>) -> tensor<2x2xui32>
// CHECK: return %[[STATE]]
func.func @main(%a: tensor<2x2xui32>) -> (tensor<2x2xui32>, tensor<4x4xui32>) {
  %0 = stablehlo.bitcast_convert %a : (tensor<2x2xui32>) -> tensor<2xui64>
  %1, %2 = stablehlo.rng_bit_generator %0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x4xui32>)
  %3 = stablehlo.bitcast_convert %1 : (tensor<2xui64>) -> tensor<2x2xui32>
  return %3, %2 : tensor<2x2xui32>, tensor<4x4xui32>
}

// -----

// All 64 bits of a constant state are known.
// CHECK-LABEL: @main(
// CHECK: "ttir.constant"() {value = dense<{{\[\[7, 1\], \[5, 0\], \[6, 0\]\]}}> : tensor<3x2xui32>}
// CHECK: "ttir.multiply"
// CHECK: return %{{.*}} : tensor<5xi32>
func.func @main() -> tensor<5xi32> {
  %0 = stablehlo.constant dense<[4294967303, 5, 6]> : tensor<3xui64>
  %1, %2 = stablehlo.rng_bit_generator %0, algorithm = PHILOX : (tensor<3xui64>) -> (tensor<3xui64>, tensor<5xi32>)
  return %2 : tensor<5xi32>
}

// -----

// The first even dimension is split in two halves, even if another one is longer. Otherwise, the longest is split.
// CHECK-LABEL: @main(
// CHECK: "ttir.concat"({{.*}}) {dim = 2 {{.*}} : (tensor<5x2x1xi32>, tensor<5x2x1xi32>)
// CHECK: "ttir.concat"({{.*}}) {dim = 2 {{.*}} : (tensor<3x3x1xi32>, tensor<3x3x1xi32>)
func.func @main(%a: tensor<2x2xui32>) -> (tensor<5x4xui32>, tensor<3x5xui32>) {
  %0 = stablehlo.bitcast_convert %a : (tensor<2x2xui32>) -> tensor<2xui64>
  %1, %2 = stablehlo.rng_bit_generator %0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5x4xui32>)
  %3, %4 = stablehlo.rng_bit_generator %0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x5xui32>)
  return %2, %4 : tensor<5x4xui32>, tensor<3x5xui32>
}
