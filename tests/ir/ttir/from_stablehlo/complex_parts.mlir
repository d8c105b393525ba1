// RUN: %opt --step stablehlo-to-ttir %s | %check

// Arguments are split into parts, and results are joined from parts. Data movement moves both parts.
// CHECK-LABEL: @main(
// CHECK-SAME: %arg0: tensor<2x3x2xf32>) -> (tensor<3x2x2xf32>, tensor<2x3xf32>)
// CHECK: "ttir.slice_static"(%arg0) {begins = array<i64: 0, 0, 0>, ends = array<i64: 2, 3, 1>
// CHECK: "ttir.slice_static"(%arg0) {begins = array<i64: 0, 0, 1>, ends = array<i64: 2, 3, 2>
// CHECK-COUNT-2: "ttir.reshape"
// CHECK: "ttir.full"() {fill_value = 1.0
// CHECK: "ttir.full"() {fill_value = -2.0
// CHECK-COUNT-4: "ttir.multiply"
// CHECK: "ttir.subtract"
// CHECK: "ttir.add"
// CHECK-COUNT-2: "ttir.permute"
// CHECK: "ttir.concat"({{.*}}) {dim = 2
// CHECK-NOT: complex
func.func @main(%z: tensor<2x3xcomplex<f32>>) -> (tensor<3x2xcomplex<f32>>, tensor<2x3xf32>) {
  %c = stablehlo.constant dense<(1.0, -2.0)> : tensor<2x3xcomplex<f32>>
  %0 = stablehlo.multiply %z, %c : tensor<2x3xcomplex<f32>>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xcomplex<f32>>) -> tensor<3x2xcomplex<f32>>
  %2 = stablehlo.imag %z : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
  return %1, %2 : tensor<3x2xcomplex<f32>>, tensor<2x3xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK-COUNT-2: "ttir.sum"({{.*}}) {dim_arg = array<i64: 0>
// CHECK-COUNT-2: "ttir.eq"
// CHECK: "ttir.logical_and"
func.func @main(%z: tensor<4xcomplex<f32>>, %y: tensor<4xcomplex<f32>>) -> (tensor<complex<f32>>, tensor<4xi1>) {
  %i = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
  %0 = stablehlo.reduce(%z init: %i) applies stablehlo.add across dimensions = [0]
    : (tensor<4xcomplex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
  %1 = stablehlo.compare EQ, %z, %y : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xi1>
  return %0, %1 : tensor<complex<f32>>, tensor<4xi1>
}

// -----

// The conversion of a complex number to a real number takes the real part.
// CHECK-LABEL: @main(
// CHECK: [[PART:%[0-9]+]] = "ttir.slice_static"(%arg0) {begins = array<i64: 0, 0, 0>, ends = array<i64: 2, 3, 1>
// CHECK: [[REAL:%[0-9]+]] = "ttir.reshape"([[PART]])
// CHECK: return [[REAL]]
func.func @main(%z: tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32> {
  %0 = stablehlo.convert %z : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// Both parts of a complex number are converted. Here, they have the new type on the device already.
// CHECK-LABEL: @main(
// CHECK: "ttir.slice_static"(%arg0) {begins = array<i64: 0, 0, 0>
// CHECK: "ttir.slice_static"(%arg0) {begins = array<i64: 0, 0, 1>
// CHECK: "ttir.concat"
func.func @main(%z: tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f64>> {
  %0 = stablehlo.convert %z : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f64>>
  return %0 : tensor<2x3xcomplex<f64>>
}
