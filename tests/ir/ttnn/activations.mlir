// RUN: env TT_TORCH_ACTIVATION_DTYPE=bfp8_b %opt --step activations %s | %check
// RUN: %opt --step activations %s | filecheck %s --check-prefix=OFF
// OFF-NOT: BFP_BFloat8

#tile = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>

// A product and the ops that follow have the type. The last product is a result of the program, and keeps its own.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<32x32xbf16, #tile>, %w: tensor<32x32xbf16, #tile> {ttcore.argument_type = "parameter"}) -> tensor<32x32xbf16, #tile> {
  // CHECK: "ttnn.matmul"(%arg0, %arg1) {{.*}} -> tensor<32x32xbf16, #ttnn.layout<"BFP_BFloat8"
  // CHECK: "ttnn.gelu"{{.*}} -> tensor<32x32xbf16, #ttnn.layout<"BFP_BFloat8"
  // CHECK: "ttnn.matmul"(%{{.*}}, %arg1) {{.*}} -> tensor<32x32xbf16, #ttnn.layout<"BFloat16"
  %0 = "ttnn.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  %1 = "ttnn.gelu"(%0) : (tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  %2 = "ttnn.matmul"(%1, %w) {transpose_a = false, transpose_b = false} : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  return %2 : tensor<32x32xbf16, #tile>
}

// -----

// A product that is added to another value changes. The sum has the type of its first operand.
#tile = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
// CHECK-LABEL: @main(
func.func @main(%x: tensor<32x32xbf16, #tile>, %w: tensor<32x32xbf16, #tile> {ttcore.argument_type = "parameter"}) -> tensor<32x32xbf16, #tile> {
  // CHECK: "ttnn.matmul"{{.*}} -> tensor<32x32xbf16, #ttnn.layout<"BFP_BFloat8"
  // CHECK: "ttnn.add"(%arg0, %{{.*}}) {{.*}} -> tensor<32x32xbf16, #ttnn.layout<"BFloat16"
  %0 = "ttnn.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  %1 = "ttnn.add"(%x, %0) : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  return %1 : tensor<32x32xbf16, #tile>
}

// -----

// Nothing changes before a softmax, whose operand may have masks; before an op that has no block floats, or none beside
// another type; or if a value that would change, too, is a result of the program.
#tile = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
// CHECK-LABEL: @main(
// CHECK-NOT: BFP_BFloat8
// CHECK: return
func.func @main(%x: tensor<32x32xbf16, #tile>, %w: tensor<32x32xbf16, #tile> {ttcore.argument_type = "parameter"}) -> (tensor<32x32xbf16, #tile>, tensor<32x64xbf16, #tile>, tensor<32x32xbf16, #tile>) {
  %0 = "ttnn.matmul"(%x, %w) {transpose_a = false, transpose_b = false} : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  %1 = "ttnn.add"(%0, %x) : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  %2 = "ttnn.softmax"(%1) {dimension = 1 : i64, numeric_stable = true} : (tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  %3 = "ttnn.matmul"(%x, %x) {transpose_a = false, transpose_b = false} : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  %4 = "ttnn.concat"(%3, %x) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x64xbf16, #tile>
  %5 = "ttnn.matmul"(%w, %x) {transpose_a = false, transpose_b = false} : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  %6 = "ttnn.exp"(%5) : (tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  %7 = "ttnn.matmul"(%x, %w) {transpose_a = false, transpose_b = true} : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  %8 = "ttnn.maximum"(%6, %7) : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  return %2, %4, %8 : tensor<32x32xbf16, #tile>, tensor<32x64xbf16, #tile>, tensor<32x32xbf16, #tile>
}

// -----

// float32 and constant products stay.
#tile = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#wide = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
// CHECK-LABEL: @main(
// CHECK-NOT: BFP_BFloat8
// CHECK: return
func.func @main(%x: tensor<32x32xf32, #wide>, %y: tensor<32x32xbf16, #tile>, %w: tensor<32x32xbf16, #tile> {ttcore.argument_type = "parameter"}) -> (tensor<32x32xf32, #wide>, tensor<32x32xbf16, #tile>) {
  %0 = "ttnn.matmul"(%x, %x) {transpose_a = false, transpose_b = false} : (tensor<32x32xf32, #wide>, tensor<32x32xf32, #wide>) -> tensor<32x32xf32, #wide>
  %1 = "ttnn.matmul"(%0, %x) {transpose_a = false, transpose_b = false} : (tensor<32x32xf32, #wide>, tensor<32x32xf32, #wide>) -> tensor<32x32xf32, #wide>
  %2 = "ttnn.matmul"(%w, %w) {transpose_a = false, transpose_b = false} : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  %3 = "ttnn.multiply"(%y, %2) : (tensor<32x32xbf16, #tile>, tensor<32x32xbf16, #tile>) -> tensor<32x32xbf16, #tile>
  return %1, %3 : tensor<32x32xf32, #wide>, tensor<32x32xbf16, #tile>
}
