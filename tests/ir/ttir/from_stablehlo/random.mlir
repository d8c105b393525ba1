// RUN: %opt --step stablehlo-to-ttir %s | %check

// Constant bounds become the bounds of rand. For other bounds, a number between 0 and 1 is scaled.
// CHECK-LABEL: func.func @main
// CHECK: "ttir.rand"() {high = 5.000000e+00 : f32, low = 2.000000e+00 : f32, size = array<i64: 4, 6>}
// CHECK: %[[DRAWN:.*]] = "ttir.rand"() {high = 1.000000e+00 : f32, low = 0.000000e+00 : f32, size = array<i64: 4, 6>}
// CHECK: %[[SCALED:.*]] = "ttir.multiply"(%[[DRAWN]], %{{.*}})
// CHECK: "ttir.add"(%[[SCALED]], %{{.*}})
func.func @main(%a: tensor<f32>, %b: tensor<f32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %low = stablehlo.constant dense<2.0> : tensor<f32>
  %high = stablehlo.constant dense<5.0> : tensor<f32>
  %shape = stablehlo.constant dense<[4, 6]> : tensor<2xi64>
  %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x6xf32>
  %1 = stablehlo.rng %a, %b, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x6xf32>
  return %0, %1 : tensor<4x6xf32>, tensor<4x6xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK: %[[DRAWN:.*]] = "ttir.rand"() {high = 1.200000e+01 : f32, low = 0.000000e+00 : f32
// CHECK: "ttir.floor"(%[[DRAWN]])
// CHECK: %[[N:.*]] = "ttir.typecast"({{.*}}) {dtype = i32}
// CHECK: "ttir.add"(%[[N]], %{{.*}})
func.func @main() -> tensor<4xi32> {
  %low = stablehlo.constant dense<-3> : tensor<i32>
  %high = stablehlo.constant dense<9> : tensor<i32>
  %shape = stablehlo.constant dense<4> : tensor<1xi64>
  %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}
