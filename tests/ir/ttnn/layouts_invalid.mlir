// RUN: %opt --step layouts --expect-error %s | %check

func.func @main(%x: tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>>) -> tensor<2x4xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>> {
  // CHECK: error: ttnn.relu: got result tensor<2x4xf32>, expected tensor<2x3xf32>
  %0 = "ttnn.relu"(%x) : (tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>>) -> tensor<2x4xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>>
  return %0 : tensor<2x4xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>>
}
