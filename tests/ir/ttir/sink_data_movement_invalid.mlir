// RUN: %opt --step canonicalize --expect-error %s | %check

func.func @main(%x: tensor<2x3xf32>) -> tensor<3xf32> {
  // CHECK: error: ttir.sum: got dimension 2 is out of range for rank 2
  %0 = "ttir.sum"(%x) {dim_arg = array<i64: 2>, keep_dim = false} : (tensor<2x3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
