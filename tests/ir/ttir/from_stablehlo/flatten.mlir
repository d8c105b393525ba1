// RUN: %opt --step stablehlo-to-ttir %s | %check

// The one public function is the program. Calls, and composites without a rule, are inlined.
// CHECK-LABEL: func.func public @main(
// CHECK-NEXT: "ttir.add"(%arg0, %arg0)
// CHECK-NEXT: "ttir.gelu"
// CHECK-NEXT: return
// CHECK-NEXT: }
// CHECK-NEXT: }
func.func public @forward(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = call @layer(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @layer(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.composite "my.double" %a {decomposition = @double} : (tensor<2xf32>) -> tensor<2xf32>
  %1 = stablehlo.composite "tenstorrent.gelu" %0 {decomposition = @double} : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @double(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %a, %a : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// The last branch is used for indices out of range. Each other branch is selected if the index is its number.
// CHECK-LABEL: @main(
// CHECK: %[[A:.*]] = "ttir.neg"(%arg0)
// CHECK: %[[B:.*]] = "ttir.abs"(%arg0)
// CHECK: %[[C:.*]] = "ttir.exp"(%arg0)
// CHECK: %[[ONE:.*]] = "ttir.full"() {fill_value = 1 : i64
// CHECK: %[[IS1:.*]] = "ttir.eq"(%arg1, %[[ONE]])
// CHECK: %[[LATER:.*]] = "ttir.where"(%[[IS1]], %[[B]], %[[C]])
// CHECK: %[[ZERO:.*]] = "ttir.full"() {fill_value = 0 : i64
// CHECK: %[[IS0:.*]] = "ttir.eq"(%arg1, %[[ZERO]])
// CHECK: "ttir.where"(%[[IS0]], %[[A]], %[[LATER]])
func.func @main(%a: tensor<2xf32>, %i: tensor<i32>) -> tensor<2xf32> {
  %0 = "stablehlo.case"(%i) ({
    %1 = stablehlo.negate %a : tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }, {
    %1 = stablehlo.abs %a : tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }, {
    %1 = stablehlo.exponential %a : tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }) : (tensor<i32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: "ttir.where"(%arg1, %arg0, %{{.*}})
func.func @main(%a: tensor<2xf32>, %p: tensor<i1>) -> tensor<2xf32> {
  %0 = "stablehlo.if"(%p) ({
    stablehlo.return %a : tensor<2xf32>
  }, {
    %1 = stablehlo.negate %a : tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }) : (tensor<i1>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// CHECK-LABEL: @main(
// CHECK: %[[V:.*]]:2 = "ttir.sort"(%arg0)
// CHECK: %[[P:.*]] = "ttir.slice_static"(%[[V]]#1)
// CHECK-NOT: tuple
// CHECK: return %[[P]], %arg0
func.func @main(%a: tensor<4xf32>) -> (tensor<2xi32>, tensor<4xf32>) {
  %0 = stablehlo.custom_call @mhlo.topk(%a) {mhlo.attributes = {k = 2 : i64, largest = true}}
    : (tensor<4xf32>) -> tuple<tensor<2xf32>, tensor<2xi32>>
  %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<2xf32>, tensor<2xi32>>) -> tensor<2xi32>
  %2 = stablehlo.tuple %a, %1 : tuple<tensor<4xf32>, tensor<2xi32>>
  %3 = stablehlo.get_tuple_element %2[0] : (tuple<tensor<4xf32>, tensor<2xi32>>) -> tensor<4xf32>
  return %1, %3 : tensor<2xi32>, tensor<4xf32>
}

// -----

// Quantized values become integers, and arithmetic on them is done in floats.
// CHECK-LABEL: @main(
// CHECK-SAME: -> tensor<2xi32>
// CHECK: "ttir.divide"
// CHECK: %[[Q:.*]] = "ttir.typecast"(%{{.*}}) {dtype = i32}
// CHECK: "ttir.subtract"(%[[Q]]
// CHECK: "ttir.add"({{.*}}) : (tensor<2xf32>, tensor<2xf32>)
func.func @main(%a: tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 0.5:3>> {
  %0 = stablehlo.uniform_quantize %a : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 0.5:3>>
  %1 = stablehlo.add %0, %0 : tensor<2x!quant.uniform<i8:f32, 0.5:3>>
  return %1 : tensor<2x!quant.uniform<i8:f32, 0.5:3>>
}

// -----

// Ops that exist only in CHLO are decomposed.
// CHECK-LABEL: @main(
// CHECK: "ttir.exp"
// CHECK-NOT: chlo
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.sinh %a : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
