// RUN: %opt --step stablehlo-to-ttir %s | %check

// A gather of rows of a table becomes an embedding.
// CHECK-LABEL: @main(
func.func @main(%t: tensor<10x4xf32>, %i: tensor<2x3xi64>) -> tensor<2x3x4xf32> {
  // CHECK: [[TABLE:%[0-9]+]] = "ttir.reshape"({{.*}}) {shape = array<i64: 10, 4>}
  // CHECK: "ttir.embedding"({{.*}}, [[TABLE]]) : (tensor<6xi32>, tensor<10x4xf32>) -> tensor<6x4xf32>
  // CHECK: "ttir.reshape"({{.*}}) {shape = array<i64: 2, 3, 4>}
  %0 = "stablehlo.gather"(%t, %i) {
    dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 4>, indices_are_sorted = false
  } : (tensor<10x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// -----

// Index vectors (column, row) along the first dimension become row numbers of a table, 3 * column + row.
// CHECK-LABEL: @main(
func.func @main(%t: tensor<3x6x4xf32>, %i: tensor<2x5xi64>) -> tensor<4x5xf32> {
  // CHECK: "ttir.permute"(%arg1) {permutation = array<i64: 1, 0>}
  // CHECK: "ttir.permute"(%arg0) {permutation = array<i64: 1, 0, 2>}
  // CHECK: [[TABLE:%[0-9]+]] = "ttir.reshape"({{.*}}) {shape = array<i64: 18, 4>}
  // CHECK: [[STRIDE:%[0-9]+]] = "ttir.full"() {fill_value = 3 : i64
  // CHECK: "ttir.multiply"({{.*}}, [[STRIDE]])
  // CHECK: "ttir.embedding"({{.*}}, [[TABLE]])
  // CHECK: "ttir.permute"({{.*}}) {permutation = array<i64: 1, 0>} : (tensor<5x4xf32>) -> tensor<4x5xf32>
  %0 = "stablehlo.gather"(%t, %i) {
    dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 0>,
    slice_sizes = array<i64: 1, 1, 4>, indices_are_sorted = false
  } : (tensor<3x6x4xf32>, tensor<2x5xi64>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// -----

// The body gives the reduction. Updates out of range go to an extra row; indices from PyTorch are always in range.
// CHECK-LABEL: @main(
func.func @main(%t: tensor<10x4xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>) -> (tensor<10x4xf32>, tensor<10x4xf32>) {
  // CHECK: [[OUTSIDE:%[0-9]+]] = "ttir.full"() {fill_value = 10 : i64, shape = array<i64: 1, 1>}
  // CHECK: "ttir.where"({{.*}}, [[OUTSIDE]])
  // CHECK: [[MORE:%[0-9]+]] = "ttir.scatter"({{.*}}) {dim = 0 : i64, scatter_reduce_type = "Sum"} : (tensor<11x4xf32>, tensor<3x4xi32>, tensor<3x4xf32>)
  // CHECK: "ttir.slice_static"([[MORE]]) {begins = array<i64: 0, 0>, ends = array<i64: 10, 4>
  %0 = "stablehlo.scatter"(%t, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
  } : (tensor<10x4xf32>, tensor<3x1xi64>, tensor<3x4xf32>) -> tensor<10x4xf32>
  // CHECK: "ttir.scatter"({{.*}}) {dim = 0 : i64, scatter_reduce_type = "Invalid"} : (tensor<10x4xf32>,
  %1 = "stablehlo.scatter"(%t, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) {
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
  } : (tensor<10x4xf32>, tensor<3x1xi64>, tensor<3x4xf32>) -> tensor<10x4xf32> loc("index_put: aten.index_put.default")
  return %0, %1 : tensor<10x4xf32>, tensor<10x4xf32>
}

// -----

// A reverse of rows becomes an embedding of row numbers that count down.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4x3xf32>) -> tensor<4x3xf32> {
  // CHECK: [[ROWS:%[0-9]+]] = "ttir.arange"() {{{.*}}end = -1 : i64, start = 3 : i64, step = -1 : i64}
  // CHECK: "ttir.embedding"([[ROWS]],
  %0 = stablehlo.reverse %x, dims = [0] : tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

// -----

// Windows of two rows in each batch are moved back into range; each gets two row numbers.
// CHECK-LABEL: @main(
func.func @main(%t: tensor<3x10x4xf32>, %i: tensor<3x5xi32>) -> tensor<3x5x2x4xf32> {
  // CHECK: [[BATCH:%[0-9]+]] = "ttir.arange"() {arange_dimension = 0 : i64, end = 3
  // CHECK: [[LATEST:%[0-9]+]] = "ttir.full"() {fill_value = 8 : i64
  // CHECK: "ttir.minimum"({{.*}}, [[LATEST]])
  // CHECK: [[OFFSETS:%[0-9]+]] = "ttir.constant"() {value = dense<{{\[\[0, 3\]\]}}> : tensor<1x2xi32>}
  // CHECK: "ttir.add"({{.*}}, [[OFFSETS]]) : (tensor<15x1xi32>, tensor<1x2xi32>)
  // CHECK: "ttir.embedding"({{.*}}) : (tensor<30xi32>, tensor<30x4xf32>)
  %0 = "stablehlo.gather"(%t, %i) {
    dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], operand_batching_dims = [0], start_indices_batching_dims = [0],
      start_index_map = [1], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 2, 4>, indices_are_sorted = false
  } : (tensor<3x10x4xf32>, tensor<3x5xi32>) -> tensor<3x5x2x4xf32>
  return %0 : tensor<3x5x2x4xf32>
}

// -----

// Each reduction of a body has a type of its own.
// CHECK-LABEL: @main(
func.func @main(%t: tensor<9xf32>, %i: tensor<3x1xi64>, %u: tensor<3xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<9xf32>) {
  // CHECK: "ttir.scatter"({{.*}}) {dim = 0 : i64, scatter_reduce_type = "Max"}
  %0 = "stablehlo.scatter"(%t, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {
    scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
  } : (tensor<9xf32>, tensor<3x1xi64>, tensor<3xf32>) -> tensor<9xf32>
  // CHECK: "ttir.scatter"({{.*}}) {dim = 0 : i64, scatter_reduce_type = "Min"}
  %1 = "stablehlo.scatter"(%t, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.minimum %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {
    scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
  } : (tensor<9xf32>, tensor<3x1xi64>, tensor<3xf32>) -> tensor<9xf32>
  // CHECK: "ttir.scatter"({{.*}}) {dim = 0 : i64, scatter_reduce_type = "Prod"}
  %2 = "stablehlo.scatter"(%t, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.multiply %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {
    scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
  } : (tensor<9xf32>, tensor<3x1xi64>, tensor<3xf32>) -> tensor<9xf32>
  return %0, %1, %2 : tensor<9xf32>, tensor<9xf32>, tensor<9xf32>
}

// -----

// torch.gather: the index of every other dimension counts the positions of the result. No table is made. Positions
// out of range are moved inside.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<3x6x1xf32>, %i: tensor<2x5x1xi64>) -> tensor<2x5x1xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<2x5x1x1xi64>
  %1 = stablehlo.reshape %i : (tensor<2x5x1xi64>) -> tensor<2x5x1x1xi64>
  %2 = stablehlo.constant dense<0> : tensor<2x5x1x1xi64>
  %3 = stablehlo.concatenate %0, %1, %2, dim = 3 : (tensor<2x5x1x1xi64>, tensor<2x5x1x1xi64>, tensor<2x5x1x1xi64>) -> tensor<2x5x1x3xi64>
  // CHECK: [[LAST:%[0-9]+]] = "ttir.full"() {fill_value = 5 : i64
  // CHECK: [[INSIDE:%[0-9]+]] = "ttir.minimum"({{.*}}, [[LAST]])
  // CHECK: [[INDEX:%[0-9]+]] = "ttir.reshape"([[INSIDE]]) {shape = array<i64: 2, 5, 1>}
  // CHECK: "ttir.gather"(%arg0, [[INDEX]]) {dim = 1 : i64}
  %4 = "stablehlo.gather"(%x, %3) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1, 2], start_index_map = [0, 1, 2], index_vector_dim = 3>,
    slice_sizes = array<i64: 1, 1, 1>, indices_are_sorted = false
  } : (tensor<3x6x1xf32>, tensor<2x5x1x3xi64>) -> tensor<2x5x1xf32>
  return %4 : tensor<2x5x1xf32>
}

// -----

// Positions from PyTorch are in range.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<3x6x1xf32>, %i: tensor<2x5x1xi64>) -> tensor<2x5x1xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<2x5x1x1xi64>
  %1 = stablehlo.reshape %i : (tensor<2x5x1xi64>) -> tensor<2x5x1x1xi64>
  %2 = stablehlo.constant dense<0> : tensor<2x5x1x1xi64>
  %3 = stablehlo.concatenate %0, %1, %2, dim = 3 : (tensor<2x5x1x1xi64>, tensor<2x5x1x1xi64>, tensor<2x5x1x1xi64>) -> tensor<2x5x1x3xi64>
  // CHECK-NOT: "ttir.minimum"
  // CHECK: "ttir.gather"(%arg0, {{.*}}) {dim = 1 : i64}
  %4 = "stablehlo.gather"(%x, %3) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1, 2], start_index_map = [0, 1, 2], index_vector_dim = 3>,
    slice_sizes = array<i64: 1, 1, 1>, indices_are_sorted = false
  } : (tensor<3x6x1xf32>, tensor<2x5x1x3xi64>) -> tensor<2x5x1xf32> loc("gather: aten.gather.default")
  return %4 : tensor<2x5x1xf32>
}

// -----

// Batching dimensions say the same. JAX writes take_along_axis like this.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6xf32>, %i: tensor<2x5x1xi64>) -> tensor<2x5xf32> {
  // CHECK: "ttir.gather"(%arg0, {{.*}}) {dim = 1 : i64}
  %0 = "stablehlo.gather"(%x, %i) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 1>, indices_are_sorted = false
  } : (tensor<2x6xf32>, tensor<2x5x1xi64>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// -----

// A table is made if the positions of the results lie outside of the operand, where they are moved inside, if they
// count along another dimension, or if two components are no positions.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<3x5xf32>, %i: tensor<5x5x1xi64>) -> (tensor<5x5xf32>, tensor<5x5xf32>, tensor<5x5xf32>) {
  // CHECK-NOT: "ttir.gather"
  %0 = stablehlo.iota dim = 0 : tensor<5x5x1xi64>
  %1 = stablehlo.iota dim = 1 : tensor<5x5x1xi64>
  %2 = stablehlo.concatenate %0, %i, dim = 2 : (tensor<5x5x1xi64>, tensor<5x5x1xi64>) -> tensor<5x5x2xi64>
  %3 = stablehlo.concatenate %i, %0, dim = 2 : (tensor<5x5x1xi64>, tensor<5x5x1xi64>) -> tensor<5x5x2xi64>
  %4 = stablehlo.concatenate %i, %i, dim = 2 : (tensor<5x5x1xi64>, tensor<5x5x1xi64>) -> tensor<5x5x2xi64>
  %5 = "stablehlo.gather"(%x, %2) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 1>, indices_are_sorted = false
  } : (tensor<3x5xf32>, tensor<5x5x2xi64>) -> tensor<5x5xf32>
  %6 = "stablehlo.gather"(%x, %3) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 1>, indices_are_sorted = false
  } : (tensor<3x5xf32>, tensor<5x5x2xi64>) -> tensor<5x5xf32>
  %7 = "stablehlo.gather"(%x, %4) {
    dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>,
    slice_sizes = array<i64: 1, 1>, indices_are_sorted = false
  } : (tensor<3x5xf32>, tensor<5x5x2xi64>) -> tensor<5x5xf32>
  return %5, %6, %7 : tensor<5x5xf32>, tensor<5x5xf32>, tensor<5x5xf32>
}
