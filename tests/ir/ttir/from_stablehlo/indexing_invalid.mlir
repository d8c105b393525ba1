// RUN: %opt --step stablehlo-to-ttir --expect-error %s | %check

// Index vectors must have components.
// CHECK: error: stablehlo.gather is not supported in stage stablehlo-to-ttir
// CHECK: at loc("-":7:8)
func.func @main(%t: tensor<10x4xf32>, %i: tensor<3x0xi64>) -> tensor<3x10x4xf32> {
  %0 = "stablehlo.gather"(%t, %i) {
    dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [], index_vector_dim = 1>,
    slice_sizes = array<i64: 10, 4>, indices_are_sorted = false
  } : (tensor<10x4xf32>, tensor<3x0xi64>) -> tensor<3x10x4xf32>
  return %0 : tensor<3x10x4xf32>
}

// -----

// A body of several ops is neither a reduction of TTNN nor an overwrite.
// CHECK: error: stablehlo.scatter is not supported in stage stablehlo-to-ttir
func.func @main(%t: tensor<10x4xf32>, %i: tensor<3x1xi64>, %u: tensor<3x4xf32>) -> tensor<10x4xf32> {
  %0 = "stablehlo.scatter"(%t, %i, %u) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.multiply %b, %b : tensor<f32>
    %d = stablehlo.add %a, %c : tensor<f32>
    stablehlo.return %d : tensor<f32>
  }) {
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>
  } : (tensor<10x4xf32>, tensor<3x1xi64>, tensor<3x4xf32>) -> tensor<10x4xf32>
  return %0 : tensor<10x4xf32>
}
