// RUN: %opt --step fuse %s | %check

// A gather along dimension 0 is cut into the chips' parts, and these are joined along 1. This is a gather along 1.
// CHECK-LABEL: @main(
// CHECK-NEXT: %[[G:.*]] = "ttir.all_gather"(%arg0) {all_gather_dim = 1 : i64, cluster_axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x6xf32>
// CHECK-NEXT: return %[[G]]
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x6xf32> {
  %g = "ttir.all_gather"(%x) {all_gather_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<4x3xf32>
  %0 = "ttir.slice_static"(%g) {begins = array<i64: 0, 0>, ends = array<i64: 2, 3>, step = array<i64: 1, 1>} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.slice_static"(%g) {begins = array<i64: 2, 0>, ends = array<i64: 4, 3>, step = array<i64: 1, 1>} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %2 = "ttir.concat"(%0, %1) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  return %2 : tensor<2x6xf32>
}
}

// -----

// If the parts are in another order, this is no gather along 1.
// CHECK-LABEL: @main(
// CHECK: "ttir.all_gather"(%arg0) {all_gather_dim = 0
// CHECK: "ttir.concat"
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x6xf32> {
  %g = "ttir.all_gather"(%x) {all_gather_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<4x3xf32>
  %0 = "ttir.slice_static"(%g) {begins = array<i64: 2, 0>, ends = array<i64: 4, 3>, step = array<i64: 1, 1>} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.slice_static"(%g) {begins = array<i64: 0, 0>, ends = array<i64: 2, 3>, step = array<i64: 1, 1>} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %2 = "ttir.concat"(%0, %1) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  return %2 : tensor<2x6xf32>
}
}

// -----

// The gather stays if the parts are not the chips' parts. Here, there are two chips and three parts.
// CHECK-LABEL: @main(
// CHECK: "ttir.all_gather"(%arg0) {all_gather_dim = 0
// CHECK: "ttir.concat"
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<3x3xf32>) -> tensor<2x9xf32> {
  %g = "ttir.all_gather"(%x) {all_gather_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<3x3xf32>) -> tensor<6x3xf32>
  %0 = "ttir.slice_static"(%g) {begins = array<i64: 0, 0>, ends = array<i64: 2, 3>, step = array<i64: 1, 1>} : (tensor<6x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.slice_static"(%g) {begins = array<i64: 2, 0>, ends = array<i64: 4, 3>, step = array<i64: 1, 1>} : (tensor<6x3xf32>) -> tensor<2x3xf32>
  %2 = "ttir.slice_static"(%g) {begins = array<i64: 4, 0>, ends = array<i64: 6, 3>, step = array<i64: 1, 1>} : (tensor<6x3xf32>) -> tensor<2x3xf32>
  %3 = "ttir.concat"(%0, %1, %2) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x9xf32>
  return %3 : tensor<2x9xf32>
}
}

// -----

// A value is cut along dimension 1 and joined along 0 before a scatter along 0. This is a scatter along 1.
// CHECK-LABEL: @main(
// CHECK-NEXT: %[[S:.*]] = "ttir.reduce_scatter"(%arg0) {cluster_axis = 1 : i64, scatter_dim = 1 : i64} : (tensor<2x6xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: return %[[S]]
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<2x6xf32>) -> tensor<2x3xf32> {
  %0 = "ttir.slice_static"(%x) {begins = array<i64: 0, 0>, ends = array<i64: 2, 3>, step = array<i64: 1, 1>} : (tensor<2x6xf32>) -> tensor<2x3xf32>
  %1 = "ttir.slice_static"(%x) {begins = array<i64: 0, 3>, ends = array<i64: 2, 6>, step = array<i64: 1, 1>} : (tensor<2x6xf32>) -> tensor<2x3xf32>
  %2 = "ttir.concat"(%0, %1) {dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %3 = "ttir.reduce_scatter"(%2) {scatter_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}
}

// -----

// If a chip reads only its own part of a sum over all chips, the sum becomes one scatter per axis.
// CHECK-LABEL: @main(
// CHECK-NEXT: %[[A:.*]] = "ttir.reduce_scatter"(%arg0) {cluster_axis = 0 : i64, scatter_dim = 0 : i64} : (tensor<8x3xf32>) -> tensor<4x3xf32>
// CHECK-NEXT: %[[B:.*]] = "ttir.reduce_scatter"(%[[A]]) {cluster_axis = 1 : i64, scatter_dim = 0 : i64} : (tensor<4x3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: return %[[B]]
module attributes {ttcore.mesh_shape = array<i64: 2, 2>} {
func.func @main(%x: tensor<8x3xf32>) -> tensor<2x3xf32> {
  %0 = "ttir.all_reduce"(%x) {cluster_axis = 0 : i64} : (tensor<8x3xf32>) -> tensor<8x3xf32>
  %1 = "ttir.all_reduce"(%0) {cluster_axis = 1 : i64} : (tensor<8x3xf32>) -> tensor<8x3xf32>
  %2 = "ttir.mesh_partition"(%1) {dim = 0 : i64, cluster_axis = 0 : i64} : (tensor<8x3xf32>) -> tensor<4x3xf32>
  %3 = "ttir.mesh_partition"(%2) {dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  return %3 : tensor<2x3xf32>
}
}

// -----

// If the whole sum is read, it stays one op.
// CHECK-LABEL: @main(
// CHECK: %[[A:.*]] = "ttir.all_reduce"(%arg0)
// CHECK: "ttir.mesh_partition"(%[[A]])
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<2x3xf32>) {
  %0 = "ttir.all_reduce"(%x) {cluster_axis = 1 : i64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = "ttir.mesh_partition"(%0) {dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  return %0, %1 : tensor<4x3xf32>, tensor<2x3xf32>
}
}

// -----

// A chip's part of a gathered value is its own value if the dimension is the same. Otherwise, it is another value.
// CHECK-LABEL: @main(
// CHECK: %[[G:.*]] = "ttir.all_gather"(%arg0)
// CHECK: %[[P:.*]] = "ttir.mesh_partition"(%[[G]]) {cluster_axis = 1 : i64, dim = 1 : i64}
// CHECK: return %arg0, %[[P]]
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<4x2xf32>) {
  %0 = "ttir.all_gather"(%x) {all_gather_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<2x4xf32>) -> tensor<4x4xf32>
  %1 = "ttir.mesh_partition"(%0) {dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %2 = "ttir.mesh_partition"(%0) {dim = 1 : i64, cluster_axis = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x2xf32>
  return %1, %2 : tensor<2x4xf32>, tensor<4x2xf32>
}
}

// -----

// A scatter and the gather of its parts are a sum. They are no sum if the parts are gathered along another axis.
// CHECK-LABEL: @main(
// CHECK: %[[S:.*]] = "ttir.all_reduce"(%arg0) {cluster_axis = 1 : i64}
// CHECK: %[[T:.*]] = "ttir.reduce_scatter"(%arg0)
// CHECK: %[[G:.*]] = "ttir.all_gather"(%[[T]]) {all_gather_dim = 0 : i64, cluster_axis = 0 : i64}
// CHECK: return %[[S]], %[[G]]
module attributes {ttcore.mesh_shape = array<i64: 2, 2>} {
func.func @main(%x: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %0 = "ttir.reduce_scatter"(%x) {scatter_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.all_gather"(%0) {all_gather_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<4x3xf32>
  %2 = "ttir.reduce_scatter"(%x) {scatter_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %3 = "ttir.all_gather"(%2) {all_gather_dim = 0 : i64, cluster_axis = 0 : i64} : (tensor<2x3xf32>) -> tensor<4x3xf32>
  return %1, %3 : tensor<4x3xf32>, tensor<4x3xf32>
}
}

// -----

// If attention and MLP read one input, their two sums become one sum.
// CHECK-LABEL: @main(
// CHECK: %[[XY:.*]] = "ttir.add"(%arg1, %arg2)
// CHECK: %[[SUM:.*]] = "ttir.all_reduce"(%[[XY]]) {cluster_axis = 1 : i64}
// CHECK: %[[ALL:.*]] = "ttir.add"(%arg0, %[[SUM]])
// CHECK: return %[[ALL]]
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%z: tensor<4x3xf32>, %x: tensor<4x3xf32>, %y: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0 = "ttir.all_reduce"(%x) {cluster_axis = 1 : i64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = "ttir.all_reduce"(%y) {cluster_axis = 1 : i64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = "ttir.add"(%z, %0) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %3 = "ttir.add"(%2, %1) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %3 : tensor<4x3xf32>
}
}

// -----

// Sums along two different axes stay two sums.
// CHECK-LABEL: @main(
// CHECK-COUNT-2: ttir.all_reduce
module attributes {ttcore.mesh_shape = array<i64: 2, 2>} {
func.func @main(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %0 = "ttir.all_reduce"(%x) {cluster_axis = 0 : i64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %1 = "ttir.all_reduce"(%y) {cluster_axis = 1 : i64} : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = "ttir.add"(%0, %1) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return %2 : tensor<4x3xf32>
}
}

// -----

// The chips exchange bfloat16 if the values before or after the gather are bfloat16.
// CHECK-LABEL: @main(
// CHECK: %[[N:.*]] = "ttir.typecast"(%arg0) {dtype = bf16}
// CHECK: %[[A:.*]] = "ttir.all_gather"(%[[N]]) {{.*}} : (tensor<2x3xbf16>) -> tensor<4x3xbf16>
// CHECK: %[[B:.*]] = "ttir.all_gather"(%arg1) {{.*}} : (tensor<2x3xbf16>) -> tensor<4x3xbf16>
// CHECK: %[[W:.*]] = "ttir.typecast"(%[[B]]) {dtype = f32}
// CHECK: return %[[A]], %[[W]]
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xbf16>) -> (tensor<4x3xbf16>, tensor<4x3xf32>) {
  %0 = "ttir.all_gather"(%x) {all_gather_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<4x3xf32>
  %1 = "ttir.typecast"(%0) {dtype = bf16} : (tensor<4x3xf32>) -> tensor<4x3xbf16>
  %2 = "ttir.typecast"(%y) {dtype = f32} : (tensor<2x3xbf16>) -> tensor<2x3xf32>
  %3 = "ttir.all_gather"(%2) {all_gather_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<4x3xf32>
  return %1, %3 : tensor<4x3xbf16>, tensor<4x3xf32>
}
}

// -----

// If the dimension of the gather is summed, the chips exchange the sums of their own values.
// CHECK-LABEL: @main(
// CHECK: %[[OWN:.*]] = "ttir.sum"(%arg0) {dim_arg = array<i64: 0>, keep_dim = false} : (tensor<2x3xf32>) -> tensor<3xf32>
// CHECK: "ttir.all_reduce"(%[[OWN]]) {cluster_axis = 1 : i64} : (tensor<3xf32>) -> tensor<3xf32>
// CHECK: "ttir.all_gather"(%arg0)
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<2x3xf32>) -> (tensor<3xf32>, tensor<4xf32>) {
  %0 = "ttir.all_gather"(%x) {all_gather_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<4x3xf32>
  %1 = "ttir.sum"(%0) {dim_arg = array<i64: 0>, keep_dim = false} : (tensor<4x3xf32>) -> tensor<3xf32>
  %2 = "ttir.all_gather"(%x) {all_gather_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<4x3xf32>
  %3 = "ttir.sum"(%2) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<4x3xf32>) -> tensor<4xf32>
  return %1, %3 : tensor<3xf32>, tensor<4xf32>
}
}

// -----

// The second mean is of a value that the chips of a row have already. A mean of other values stays.
// CHECK-LABEL: @main(
// CHECK: %[[N:.*]] = "ttir.full"
// CHECK: %[[A:.*]] = "ttir.all_reduce"(%arg0)
// CHECK: %[[B:.*]] = "ttir.divide"(%[[A]], %[[N]])
// CHECK: %[[C:.*]] = "ttir.add"(%[[B]], %[[N]])
// CHECK: %[[D:.*]] = "ttir.add"(%[[B]], %arg0)
// CHECK: %[[E:.*]] = "ttir.all_reduce"(%[[D]])
// CHECK: %[[F:.*]] = "ttir.divide"(%[[E]], %[[N]])
// CHECK: return %[[C]], %[[F]]
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %n = "ttir.full"() {fill_value = 2.0 : f64, shape = array<i64>} : () -> tensor<f32>
  %0 = "ttir.all_reduce"(%x) {cluster_axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.divide"(%0, %n) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %2 = "ttir.add"(%1, %n) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %3 = "ttir.all_reduce"(%2) {cluster_axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %4 = "ttir.divide"(%3, %n) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %5 = "ttir.add"(%1, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = "ttir.all_reduce"(%5) {cluster_axis = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %7 = "ttir.divide"(%6, %n) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %4, %7 : tensor<2x3xf32>, tensor<2x3xf32>
}
}
