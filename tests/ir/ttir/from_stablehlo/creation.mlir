// RUN: %opt --step stablehlo-to-ttir %s | %check

// A splat becomes a full, and booleans become bf16. A bound of 64 bits becomes the largest integer of 32 bits.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2xi64>) -> (tensor<2x3xf32>, tensor<2xi1>, tensor<2xi64>, tensor<3xf64>, tensor<2xi1>, tensor<3xbf16>) {
  // CHECK: "ttir.full"() {fill_value = 1.5{{.*}}shape = array<i64: 2, 3>} : () -> tensor<2x3xf32>
  %0 = stablehlo.constant dense<1.5> : tensor<2x3xf32>
  // CHECK: "ttir.full"() {fill_value = 1.0{{.*}} -> tensor<2xbf16>
  %1 = stablehlo.constant dense<true> : tensor<2xi1>
  // CHECK: "ttir.full"() {fill_value = 2147483647 : i64, {{.*}} -> tensor<2xi32>
  %bound = stablehlo.constant dense<9223372036854775807> : tensor<2xi64>
  %2 = stablehlo.minimum %x, %bound : tensor<2xi64>
  // CHECK: "ttir.constant"() {value = dense<[1.0{{.*}}, 2.0{{.*}}, 3.0{{.*}}]> : tensor<3xf32>}
  %3 = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf64>
  // CHECK: "ttir.constant"() {value = dense<[1.0{{.*}}, 0.0{{.*}}]> : tensor<2xbf16>}
  %4 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  // CHECK: "ttir.constant"() {value = dense<[1.0078{{.*}}, 0xFF80, 0x7FC0]> : tensor<3xbf16>}
  %5 = stablehlo.constant dense<[1.0078125, 0xFF80, 0x7FC0]> : tensor<3xbf16>
  return %0, %1, %2, %3, %4, %5
    : tensor<2x3xf32>, tensor<2xi1>, tensor<2xi64>, tensor<3xf64>, tensor<2xi1>, tensor<3xbf16>
}

// -----

// CHECK-LABEL: @main(
func.func @main() -> (tensor<2x3xi64>, tensor<5xf32>) {
  // CHECK: "ttir.arange"() {arange_dimension = 1 : i64, end = 3 : i64, start = 0 : i64, step = 1 : i64} : () -> tensor<2x3xi32>
  %0 = stablehlo.iota dim = 1 : tensor<2x3xi64>
  %shape = stablehlo.constant dense<5> : tensor<1xi64>
  // CHECK: "ttir.arange"() {{.*}} -> tensor<5xf32>
  %1 = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<1xi64>) -> tensor<5xf32>
  return %0, %1 : tensor<2x3xi64>, tensor<5xf32>
}

// -----

// Constants that are no tensors are left over from computations of shapes, and are removed.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK-NOT: ttir.full
  // CHECK: return %arg0
  %0 = arith.constant 3 : index
  %1 = arith.constant 3 : i32
  return %x : tensor<2xf32>
}
