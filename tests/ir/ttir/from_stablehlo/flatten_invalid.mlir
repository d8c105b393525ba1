// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// CHECK: error: builtin.module is not supported in stage stablehlo-to-ttir
// CHECK: a program is the function main, or the only public one; public are: f, g
func.func @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  return %a : tensor<2xf32>
}
func.func @g(%a: tensor<2xf32>) -> tensor<2xf32> {
  return %a : tensor<2xf32>
}

// -----

// CHECK: error: stablehlo.tuple is not supported in stage stablehlo-to-ttir
func.func @main(%a: tensor<2xf32>) -> tuple<tensor<2xf32>> {
  %0 = stablehlo.tuple %a : tuple<tensor<2xf32>>
  return %0 : tuple<tensor<2xf32>>
}

// -----

// CHECK: error: stablehlo.while is not supported in stage stablehlo-to-ttir
func.func @main(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.while(%i = %a) : tensor<i32>
    cond {
      %1 = stablehlo.compare LT, %i, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %i, %i : tensor<i32>
      stablehlo.return %1 : tensor<i32>
    }
  return %0 : tensor<i32>
}
