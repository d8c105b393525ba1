// RUN: %opt --step ttir-to-ttnn --step layouts --step const-eval %s | %check

// Each connected group of constant ops becomes a function.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>, %a: tensor<2x3xf32> {ttcore.argument_type = "parameter"}, %b: tensor<2x3xf32> {ttcore.argument_type = "parameter"}, %c: tensor<2x3xf32> {ttcore.argument_type = "parameter"}) -> tensor<2x3xf32> {
  // CHECK-SAME: %arg0{{.*}} %arg1{{.*}} %arg2{{.*}} %arg3
  // CHECK-NEXT: [[S:%[0-9]+]] = call @main_const_eval_0(%arg1, %arg2)
  // CHECK-NEXT: [[E:%[0-9]+]] = call @main_const_eval_1(%arg3)
  // CHECK-NEXT: "ttnn.to_layout"(%arg0)
  // CHECK-NEXT: "ttnn.multiply"({{.*}}, [[S]])
  // CHECK-NEXT: "ttnn.multiply"({{.*}}, [[E]])
  // CHECK-NEXT: return
  // CHECK: func.func private @main_const_eval_0
  // CHECK-SAME: ttcore.argument_type = "parameter"{{.*}}ttcore.argument_type = "parameter"
  // CHECK: "ttnn.add"
  // CHECK: func.func private @main_const_eval_1
  // CHECK: "ttnn.exp"
  %0 = "ttir.add"(%a, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.exp"(%c) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "ttir.multiply"(%x, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = "ttir.multiply"(%2, %1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}

// -----

// A splat does not connect the groups that read it; each gets a copy.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>, %a: tensor<2x3xf32> {ttcore.argument_type = "parameter"}, %b: tensor<2x3xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
  // CHECK-COUNT-3: call @main_const_eval
  // CHECK-NOT: ttnn.full
  // CHECK: func.func private @main_const_eval_0
  // CHECK: func.func private @main_const_eval_1
  // CHECK: func.func private @main_const_eval_2
  %one = "ttir.full"() {shape = array<i64: 1>, fill_value = 1.0 : f64} : () -> tensor<1xf32>
  %0 = "ttir.add"(%a, %one) : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
  %1 = "ttir.add"(%b, %one) : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
  %2 = "ttir.add"(%x, %one) : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
  %3 = "ttir.multiply"(%2, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = "ttir.multiply"(%2, %1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %3, %4, %2 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// Without parameters, no function is made.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NOT: call
  %0 = "ttir.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
