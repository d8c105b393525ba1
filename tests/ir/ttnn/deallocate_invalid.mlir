// RUN: %opt --step deallocate --expect-error %s | %check

func.func @main(%x: tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>>) -> tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>> {
  // CHECK: error: Unable to parse module assembly
  // CHECK: 'ttnn.deallocate' op attribute "force" is expected but not provided
  "ttnn.deallocate"(%x) : (tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>>) -> ()
  return %x : tensor<2x3xf32, #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>>
}
