// RUN: %opt --step apply-dtype --dtype bf16 --expect-error %s | %check

func.func @main(%x: tensor<4xf32>) -> tensor<4xi32> {
  // CHECK: error: ttir.typecast: got result tensor<4xi32>, expected tensor<4xbf16>
  %0 = "ttir.typecast"(%x) {dtype = bf16} : (tensor<4xf32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}
