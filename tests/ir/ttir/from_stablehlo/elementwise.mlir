// RUN: %opt --step stablehlo-to-ttir %s | %check

// Ops of each family. and/or/xor/not become logical ops on booleans (bf16), and bitwise ops on integers.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<2x3xf32>, %m: tensor<2x3xi1>, %n: tensor<2x3xi64>)
    -> (tensor<2x3xf32>, tensor<2x3xi1>, tensor<2x3xi64>) {
  // CHECK: "ttir.sigmoid"
  %0 = stablehlo.logistic %a : tensor<2x3xf32>
  // CHECK: "ttir.erf"
  %1 = chlo.erf %0 : tensor<2x3xf32> -> tensor<2x3xf32>
  // CHECK: "ttir.subtract"({{.*}}) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = stablehlo.subtract %a, %1 : tensor<2x3xf32>
  // CHECK: "ttir.logical_and"({{.*}}) : (tensor<2x3xbf16>, tensor<2x3xbf16>) -> tensor<2x3xbf16>
  %3 = stablehlo.and %m, %m : tensor<2x3xi1>
  // CHECK: "ttir.bitwise_and"({{.*}}) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
  %4 = stablehlo.and %n, %n : tensor<2x3xi64>
  return %2, %3, %4 : tensor<2x3xf32>, tensor<2x3xi1>, tensor<2x3xi64>
}

// -----

// CHLO ops broadcast their operands, to given dimensions if the attribute is present.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %c: tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2x3xi1>) {
  // CHECK: "ttir.add"(%arg0, %arg1)
  %0 = chlo.broadcast_add %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: [[COLUMN:%[0-9]+]] = "ttir.reshape"(%arg2) {shape = array<i64: 2, 1>}
  // CHECK: "ttir.gt"({{.*}}, [[COLUMN]]) {{.*}} -> tensor<2x3xbf16>
  %1 = chlo.broadcast_compare %0, %c {
    broadcast_dimensions = array<i64: 0>, comparison_direction = #chlo<comparison_direction GT>
  } : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xi1>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xi1>
}

// -----

// A convert to boolean becomes a comparison with zero. A convert from boolean only changes the type.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<4xf32>) -> (tensor<4xi1>, tensor<4xf32>) {
  // CHECK: [[ZERO:%[0-9]+]] = "ttir.full"() {fill_value = 0.0{{.*}} -> tensor<4xf32>
  // CHECK: [[TRUE:%[0-9]+]] = "ttir.ne"(%arg0, [[ZERO]])
  %0 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xi1>
  // CHECK: "ttir.typecast"([[TRUE]]) {dtype = f32}
  %1 = stablehlo.convert %0 : (tensor<4xi1>) -> tensor<4xf32>
  return %0, %1 : tensor<4xi1>, tensor<4xf32>
}

// -----

// Bounds that a float32 attribute holds exactly go to clamp_scalar. A float32 cannot hold the largest integer exactly.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<4xf32>, %n: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>, tensor<4xi32>) {
  %low = stablehlo.constant dense<0.0> : tensor<f32>
  %high = stablehlo.constant dense<6.0> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %last = stablehlo.constant dense<2147483647> : tensor<i32>
  // CHECK: "ttir.clamp_scalar"(%arg0) {max = 6.0{{.*}} min = 0.0
  %0 = stablehlo.clamp %low, %a, %high : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK: "ttir.clamp_scalar"(%arg1) {max = 1.0{{0*}}e+01
  %1 = stablehlo.clamp %zero, %n, %ten : (tensor<i32>, tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  // CHECK: "ttir.maximum"(%arg1
  // CHECK: "ttir.minimum"
  %2 = stablehlo.clamp %zero, %n, %last : (tensor<i32>, tensor<4xi32>, tensor<i32>) -> tensor<4xi32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xi32>, tensor<4xi32>
}

// -----

// The remainder has the sign of the dividend.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: [[X:%[0-9]+]] = "ttir.abs"(%arg0)
  // CHECK: [[Y:%[0-9]+]] = "ttir.abs"(%arg1)
  // CHECK: [[M:%[0-9]+]] = "ttir.remainder"([[X]], [[Y]])
  // CHECK: [[S:%[0-9]+]] = "ttir.sign"(%arg0)
  // CHECK: "ttir.multiply"([[S]], [[M]])
  %0 = stablehlo.remainder %a, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
