// RUN: %opt --step stablehlo-to-ttir %s | %check

// Every value gets a type that the device has. This includes arguments and results.
// CHECK-LABEL: @main(
// CHECK-SAME: tensor<2xi32>, %arg1: tensor<2xf32>, %arg2: tensor<2xbf16>, %arg3: tensor<2xf32>, %arg4: tensor<2xui8>
// CHECK-SAME: -> (tensor<2xi32>, tensor<2xf32>, tensor<2xbf16>, tensor<2xf32>, tensor<2xui8>)
func.func @main(%i: tensor<2xi64>, %d: tensor<2xf64>, %b: tensor<2xi1>, %h: tensor<2xf16>, %u: tensor<2xui8>)
    -> (tensor<2xi64>, tensor<2xf64>, tensor<2xi1>, tensor<2xf16>, tensor<2xui8>) {
  // CHECK: "ttir.add"(%arg0, %arg0) : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %0 = stablehlo.add %i, %i : tensor<2xi64>
  // CHECK-NOT: typecast
  %1 = stablehlo.convert %0 : (tensor<2xi64>) -> tensor<2xi32>
  %2 = stablehlo.convert %1 : (tensor<2xi32>) -> tensor<2xi64>
  return %2, %d, %b, %h, %u : tensor<2xi64>, tensor<2xf64>, tensor<2xi1>, tensor<2xf16>, tensor<2xui8>
}

// -----

// An integer of 8 bits keeps its lowest bits after an addition, but a minimum fits already.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2xi8>) -> (tensor<2xi8>, tensor<2xi8>) {
  // CHECK: [[SUM:%[0-9]+]] = "ttir.add"(%arg0, %arg0)
  // CHECK: [[MOVED:%[0-9]+]] = "ttir.add"([[SUM]], {{.*}}
  // CHECK: [[LOW:%[0-9]+]] = "ttir.bitwise_and"([[MOVED]], {{.*}}
  // CHECK: [[WRAPPED:%[0-9]+]] = "ttir.subtract"([[LOW]], {{.*}}
  %0 = stablehlo.add %x, %x : tensor<2xi8>
  // CHECK-NEXT: [[LEAST:%[0-9]+]] = "ttir.minimum"(%arg0, [[WRAPPED]])
  %1 = stablehlo.minimum %x, %0 : tensor<2xi8>
  // CHECK-NEXT: return [[WRAPPED]], [[LEAST]]
  return %0, %1 : tensor<2xi8>, tensor<2xi8>
}
