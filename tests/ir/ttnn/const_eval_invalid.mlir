// RUN: %opt --step ttir-to-ttnn --step layouts --step const-eval --expect-error %s | %check

func.func @main(%x: tensor<2x3xf32>, %a: tensor<2x3xf32> {ttcore.argument_type = "parameter"}) -> tensor<2x3xf32> {
  // CHECK: error: ttir.add: got result tensor<2x3xi32>, expected tensor<2x3xf32>
  %0 = "ttir.add"(%x, %a) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi32>
  return %x : tensor<2x3xf32>
}
