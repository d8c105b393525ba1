// RUN: %opt --step legality --expect-error %s | %check

// The message has PyTorch's name of the op, and the user's line.
// CHECK: error: aten.add.Tensor is not supported in stage legality
// CHECK-NEXT: at model.py:7
// CHECK-NEXT: node add_1 needs ttnn.add, and ttnn {{.*}} does not take an operand of UInt8 in Tile
#bytes = #ttnn.layout<"UInt8", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xui8, #bytes>) -> tensor<2x3xui8, #bytes> {
  %0 = "ttnn.add"(%x, %x) : (tensor<2x3xui8, #bytes>, tensor<2x3xui8, #bytes>) -> tensor<2x3xui8, #bytes> loc("add_1: aten.add.Tensor"("model.py":7:0))
  return %0 : tensor<2x3xui8, #bytes>
}

// -----

// The second operand is checked, too.
// CHECK: ttnn.add, and ttnn {{.*}} does not take an operand on the host
#device = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#host = #ttnn.layout<"Float32", "RowMajor", "SystemMemory", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xf32, #device>, %y: tensor<2x3xf32, #host>) -> tensor<2x3xf32, #device> {
  %0 = "ttnn.add"(%x, %y) : (tensor<2x3xf32, #device>, tensor<2x3xf32, #host>) -> tensor<2x3xf32, #device>
  return %0 : tensor<2x3xf32, #device>
}

// -----

// CHECK: ttnn.where, and ttnn {{.*}} does not take an operand of Float32 in RowMajor
#rows = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xf32, #rows>) -> tensor<2x3xf32, #rows> {
  %0 = "ttnn.where"(%x, %x, %x) : (tensor<2x3xf32, #rows>, tensor<2x3xf32, #rows>, tensor<2x3xf32, #rows>) -> tensor<2x3xf32, #rows>
  return %0 : tensor<2x3xf32, #rows>
}

// -----

// A result has the page layout of the operand.
// CHECK: ttnn.exp, and ttnn {{.*}} does not take a result of Float32 in RowMajor: it is Float32 in Tile
#tiles = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#rows = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xf32, #tiles>) -> tensor<2x3xf32, #rows> {
  %0 = "ttnn.exp"(%x) : (tensor<2x3xf32, #tiles>) -> tensor<2x3xf32, #rows>
  return %0 : tensor<2x3xf32, #rows>
}

// -----

// A conversion gives any data type, but keeps the pages.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.typecast, and ttnn {{.*}} does not take a result of BFloat16 in Tile: it is BFloat16 in RowMajor
#rows = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#narrow = #ttnn.layout<"BFloat16", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#tiles = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xf32, #rows>) -> tensor<2x3xbf16, #tiles> {
  %0 = "ttnn.typecast"(%x) {dtype = "BFloat16"} : (tensor<2x3xf32, #rows>) -> tensor<2x3xbf16, #narrow>
  %1 = "ttnn.typecast"(%x) {dtype = "BFloat16"} : (tensor<2x3xf32, #rows>) -> tensor<2x3xbf16, #tiles> loc("illegal")
  return %1 : tensor<2x3xbf16, #tiles>
}

// -----

// The maximum of a row-major operand is in tiles, its sum is row major.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.max, and ttnn {{.*}} does not take a result of Float32 in RowMajor: it is Float32 in Tile
#rows = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xf32, #rows>) -> tensor<2xf32, #rows> {
  %0 = "ttnn.sum"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<2x3xf32, #rows>) -> tensor<2xf32, #rows>
  %1 = "ttnn.max"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<2x3xf32, #rows>) -> tensor<2xf32, #rows> loc("illegal")
  return %1 : tensor<2xf32, #rows>
}

// -----

// Positions in float32 values have 32 bits. Positions in bfloat16 values have 16 bits.
// CHECK: ttnn.sort, and ttnn {{.*}} does not take a result of UInt32 in Tile: it is UInt16 in Tile
#f32 = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#bf16 = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#ui32 = #ttnn.layout<"UInt32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xf32, #f32>, %y: tensor<2x3xbf16, #bf16>) -> tensor<2x3xui32, #ui32> {
  %0, %1 = "ttnn.sort"(%x) {dim = 1 : i64, descending = false, stable = false} : (tensor<2x3xf32, #f32>) -> (tensor<2x3xf32, #f32>, tensor<2x3xui32, #ui32>)
  %2, %3 = "ttnn.sort"(%y) {dim = 1 : i64, descending = false, stable = false} : (tensor<2x3xbf16, #bf16>) -> (tensor<2x3xbf16, #bf16>, tensor<2x3xui32, #ui32>)
  return %3 : tensor<2x3xui32, #ui32>
}

// -----

// Positions in bfloat16 values have 32 bits if the length, rounded up to a power of two, needs more than 16 bits.
// CHECK: ttnn.sort, and ttnn {{.*}} does not take a result of UInt16 in Tile: it is UInt32 in Tile
#bf16 = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#ui16 = #ttnn.layout<"UInt16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<32768xbf16, #bf16>, %y: tensor<32769xbf16, #bf16>) -> tensor<32769xui16, #ui16> {
  %0, %1 = "ttnn.sort"(%x) {dim = 0 : i64, descending = false, stable = false} : (tensor<32768xbf16, #bf16>) -> (tensor<32768xbf16, #bf16>, tensor<32768xui16, #ui16>)
  %2, %3 = "ttnn.sort"(%y) {dim = 0 : i64, descending = false, stable = false} : (tensor<32769xbf16, #bf16>) -> (tensor<32769xbf16, #bf16>, tensor<32769xui16, #ui16>)
  return %3 : tensor<32769xui16, #ui16>
}

// -----

// For topk, the length is rounded up to whole tiles.
// CHECK: ttnn.topk, and ttnn {{.*}} does not take a result of UInt16 in Tile: it is UInt32 in Tile
#bf16 = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#ui16 = #ttnn.layout<"UInt16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<65536xbf16, #bf16>, %y: tensor<65537xbf16, #bf16>) -> tensor<4xui16, #ui16> {
  %0, %1 = "ttnn.topk"(%x) {k = 4 : i64, dim = 0 : i64, largest = true, sorted = true} : (tensor<65536xbf16, #bf16>) -> (tensor<4xbf16, #bf16>, tensor<4xui16, #ui16>)
  %2, %3 = "ttnn.topk"(%y) {k = 4 : i64, dim = 0 : i64, largest = true, sorted = true} : (tensor<65537xbf16, #bf16>) -> (tensor<4xbf16, #bf16>, tensor<4xui16, #ui16>)
  return %3 : tensor<4xui16, #ui16>
}

// -----

// In row-major layout, floats are searched along any dimension, integers only along the last one.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.argmax, and ttnn {{.*}} does not take rows of Int32 along another dimension than the last
#f32 = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#i32 = #ttnn.layout<"Int32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#ui32 = #ttnn.layout<"UInt32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xf32, #f32>, %n: tensor<2x3xi32, #i32>) -> tensor<3xui32, #ui32> {
  %0 = "ttnn.argmax"(%x) {dim = 0 : i64, keep_dim = false} : (tensor<2x3xf32, #f32>) -> tensor<3xui32, #ui32>
  %1 = "ttnn.argmax"(%n) {dim = 1 : i64, keep_dim = false} : (tensor<2x3xi32, #i32>) -> tensor<2xui32, #ui32>
  %2 = "ttnn.argmax"(%n) {keep_dim = false} : (tensor<2x3xi32, #i32>) -> tensor<ui32, #ui32>
  %3 = "ttnn.argmax"(%n) {dim = 0 : i64, keep_dim = false} : (tensor<2x3xi32, #i32>) -> tensor<3xui32, #ui32> loc("illegal")
  return %3 : tensor<3xui32, #ui32>
}

// -----

// CHECK: ttnn.argmax, and ttnn {{.*}} does not take tiles of Int32
#i32 = #ttnn.layout<"Int32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#ui32 = #ttnn.layout<"UInt32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xi32, #i32>) -> tensor<2xui32, #ui32> {
  %0 = "ttnn.argmax"(%x) {dim = 1 : i64, keep_dim = false} : (tensor<2x3xi32, #i32>) -> tensor<2xui32, #ui32>
  return %0 : tensor<2xui32, #ui32>
}

// -----

// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.slice_static, and ttnn {{.*}} does not take tiles of UInt8
#rows = #ttnn.layout<"UInt8", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#tiles = #ttnn.layout<"UInt8", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<4xui8, #rows>, %y: tensor<4xui8, #tiles>) -> tensor<2xui8, #tiles> {
  %0 = "ttnn.slice_static"(%x) {step = array<i64: 1>, params = {SliceStaticOpParams = {begins = array<i64: 0>, ends = array<i64: 2>}}} : (tensor<4xui8, #rows>) -> tensor<2xui8, #rows>
  %1 = "ttnn.slice_static"(%y) {step = array<i64: 1>, params = {SliceStaticOpParams = {begins = array<i64: 0>, ends = array<i64: 2>}}} : (tensor<4xui8, #tiles>) -> tensor<2xui8, #tiles> loc("illegal")
  return %1 : tensor<2xui8, #tiles>
}

// -----

// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.repeat, and ttnn {{.*}} does not take a vector of UInt8
#rows = #ttnn.layout<"UInt8", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<1x4xui8, #rows>, %y: tensor<4xui8, #rows>) -> tensor<8xui8, #rows> {
  %0 = "ttnn.repeat"(%x) {repeat_dims = array<i64: 2, 1>} : (tensor<1x4xui8, #rows>) -> tensor<2x4xui8, #rows>
  %1 = "ttnn.repeat"(%y) {repeat_dims = array<i64: 1>} : (tensor<4xui8, #rows>) -> tensor<4xui8, #rows>
  %2 = "ttnn.repeat"(%y) {repeat_dims = array<i64: 2>} : (tensor<4xui8, #rows>) -> tensor<8xui8, #rows> loc("illegal")
  return %2 : tensor<8xui8, #rows>
}

// -----

// CHECK: ttnn.gather, and ttnn {{.*}} does not take a vector
#f32 = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#ui32 = #ttnn.layout<"UInt32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<3xf32, #f32>, %i: tensor<2xui32, #ui32>) -> tensor<2xf32, #f32> {
  %0 = "ttnn.gather"(%x, %i) {dim = 0 : i64} : (tensor<3xf32, #f32>, tensor<2xui32, #ui32>) -> tensor<2xf32, #f32>
  return %0 : tensor<2xf32, #f32>
}

// -----

// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.gather, and ttnn {{.*}} does not take an index of Int32
#f32 = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#ui16 = #ttnn.layout<"UInt16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#i32 = #ttnn.layout<"Int32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xf32, #f32>, %i: tensor<2x3xui16, #ui16>, %j: tensor<2x3xi32, #i32>) -> tensor<2x3xf32, #f32> {
  %0 = "ttnn.gather"(%x, %i) {dim = 1 : i64} : (tensor<2x3xf32, #f32>, tensor<2x3xui16, #ui16>) -> tensor<2x3xf32, #f32>
  %1 = "ttnn.gather"(%x, %j) {dim = 1 : i64} : (tensor<2x3xf32, #f32>, tensor<2x3xi32, #i32>) -> tensor<2x3xf32, #f32> loc("illegal")
  return %1 : tensor<2x3xf32, #f32>
}

// -----

// CHECK: ttnn.gather, and ttnn {{.*}} does not take an index in RowMajor
#f32 = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#rows = #ttnn.layout<"UInt32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xf32, #f32>, %i: tensor<2x3xui32, #rows>) -> tensor<2x3xf32, #f32> {
  %0 = "ttnn.gather"(%x, %i) {dim = 1 : i64} : (tensor<2x3xf32, #f32>, tensor<2x3xui32, #rows>) -> tensor<2x3xf32, #f32>
  return %0 : tensor<2x3xf32, #f32>
}

// -----

// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.scatter, and ttnn {{.*}} does not take a reduction by Max
#rows = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#index = #ttnn.layout<"UInt32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xf32, #rows>, %i: tensor<2x3xui32, #index>) -> tensor<2x3xf32, #rows> {
  %0 = "ttnn.scatter"(%x, %i, %x) {dim = 1 : i64, scatter_reduce_type = "Sum"} : (tensor<2x3xf32, #rows>, tensor<2x3xui32, #index>, tensor<2x3xf32, #rows>) -> tensor<2x3xf32, #rows>
  %1 = "ttnn.scatter"(%x, %i, %x) {dim = 1 : i64, scatter_reduce_type = "Max"} : (tensor<2x3xf32, #rows>, tensor<2x3xui32, #index>, tensor<2x3xf32, #rows>) -> tensor<2x3xf32, #rows> loc("illegal")
  return %1 : tensor<2x3xf32, #rows>
}

// -----

// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.scatter, and ttnn {{.*}} does not take tiles of Float32
#bf16 = #ttnn.layout<"BFloat16", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#f32 = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#index = #ttnn.layout<"UInt32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xbf16, #bf16>, %y: tensor<2x3xf32, #f32>, %i: tensor<2x3xui32, #index>) -> tensor<2x3xf32, #f32> {
  %0 = "ttnn.scatter"(%x, %i, %x) {dim = 1 : i64, scatter_reduce_type = "Sum"} : (tensor<2x3xbf16, #bf16>, tensor<2x3xui32, #index>, tensor<2x3xbf16, #bf16>) -> tensor<2x3xbf16, #bf16>
  %1 = "ttnn.scatter"(%y, %i, %y) {dim = 1 : i64, scatter_reduce_type = "Sum"} : (tensor<2x3xf32, #f32>, tensor<2x3xui32, #index>, tensor<2x3xf32, #f32>) -> tensor<2x3xf32, #f32> loc("illegal")
  return %1 : tensor<2x3xf32, #f32>
}

// -----

// CHECK: ttnn.embedding, and ttnn {{.*}} does not take indices of Int32
#index = #ttnn.layout<"Int32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#table = #ttnn.layout<"BFloat16", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%i: tensor<2xi32, #index>, %t: tensor<9x4xbf16, #table>) -> tensor<2x4xbf16, #table> {
  %0 = "ttnn.embedding"(%i, %t) : (tensor<2xi32, #index>, tensor<9x4xbf16, #table>) -> tensor<2x4xbf16, #table>
  return %0 : tensor<2x4xbf16, #table>
}

// -----

// CHECK: ttnn.embedding, and ttnn {{.*}} does not take a table of Float32
#index = #ttnn.layout<"UInt32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#table = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%i: tensor<2xui32, #index>, %t: tensor<9x4xf32, #table>) -> tensor<2x4xf32, #table> {
  %0 = "ttnn.embedding"(%i, %t) : (tensor<2xui32, #index>, tensor<9x4xf32, #table>) -> tensor<2x4xf32, #table>
  return %0 : tensor<2x4xf32, #table>
}

// -----

// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.pad, and ttnn {{.*}} does not take padding in front of tiles
#rows = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#tiles = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xf32, #rows>, %y: tensor<2x3xf32, #tiles>) -> tensor<2x4xf32, #tiles> {
  %0 = "ttnn.pad"(%x) {padding = array<i64: 0, 0, 1, 0>, value = 0.0 : f32} : (tensor<2x3xf32, #rows>) -> tensor<2x4xf32, #rows>
  %1 = "ttnn.pad"(%y) {padding = array<i64: 0, 0, 0, 1>, value = 0.0 : f32} : (tensor<2x3xf32, #tiles>) -> tensor<2x4xf32, #tiles>
  %2 = "ttnn.pad"(%y) {padding = array<i64: 0, 0, 1, 0>, value = 0.0 : f32} : (tensor<2x3xf32, #tiles>) -> tensor<2x4xf32, #tiles> loc("illegal")
  return %2 : tensor<2x4xf32, #tiles>
}

// -----

// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.pow_scalar, and ttnn {{.*}} does not take integers to a power that is not whole
#i32 = #ttnn.layout<"Int32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#f32 = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<3xi32, #i32>, %y: tensor<3xf32, #f32>) -> tensor<3xi32, #i32> {
  %0 = "ttnn.pow_scalar"(%x) {rhs = {I32 = {value = 3 : i64}}} : (tensor<3xi32, #i32>) -> tensor<3xi32, #i32>
  %1 = "ttnn.pow_scalar"(%y) {rhs = {FP = {value = 0.5 : f64}}} : (tensor<3xf32, #f32>) -> tensor<3xf32, #f32>
  %2 = "ttnn.pow_scalar"(%x) {rhs = {FP = {value = 0.5 : f64}}} : (tensor<3xi32, #i32>) -> tensor<3xi32, #i32> loc("illegal")
  return %2 : tensor<3xi32, #i32>
}

// -----

// CHECK: ttnn.pow_scalar, and ttnn {{.*}} does not take integers in rows
#i32 = #ttnn.layout<"Int32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<3xi32, #i32>) -> tensor<3xi32, #i32> {
  %0 = "ttnn.pow_scalar"(%x) {rhs = {I32 = {value = 3 : i64}}} : (tensor<3xi32, #i32>) -> tensor<3xi32, #i32>
  return %0 : tensor<3xi32, #i32>
}

// -----

// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.clamp_scalar, and ttnn {{.*}} does not take integers between floats
#i32 = #ttnn.layout<"Int32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#f32 = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<3xi32, #i32>, %y: tensor<3xf32, #f32>) -> tensor<3xi32, #i32> {
  %0 = "ttnn.clamp_scalar"(%x) {params = {ClampScalarOpParams = {min = {I32 = {value = 1 : i64}}, max = {I32 = {value = 2 : i64}}}}} : (tensor<3xi32, #i32>) -> tensor<3xi32, #i32>
  %1 = "ttnn.clamp_scalar"(%y) {params = {ClampScalarOpParams = {min = {FP = {value = 0.5 : f64}}, max = {FP = {value = 1.5 : f64}}}}} : (tensor<3xf32, #f32>) -> tensor<3xf32, #f32>
  %2 = "ttnn.clamp_scalar"(%x) {params = {ClampScalarOpParams = {min = {I32 = {value = 1 : i64}}, max = {FP = {value = 1.5 : f64}}}}} : (tensor<3xi32, #i32>) -> tensor<3xi32, #i32> loc("illegal")
  return %2 : tensor<3xi32, #i32>
}

// -----

// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.linear, and ttnn {{.*}} does not take a bias after transposed operands in L1
#dram = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#l1 = #ttnn.layout<"Float32", "Tile", "L1", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x4xf32, #dram>, %w: tensor<5x4xf32, #dram>, %s: tensor<4x4xf32, #dram>, %b: tensor<5xf32, #dram>, %c: tensor<4xf32, #dram>) -> tensor<2x5xf32, #l1> {
  %0 = "ttnn.linear"(%x, %s, %c) {transpose_a = false, transpose_b = true, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x4xf32, #dram>, tensor<4x4xf32, #dram>, tensor<4xf32, #dram>) -> tensor<2x4xf32, #l1>
  %1 = "ttnn.linear"(%x, %w) {transpose_a = false, transpose_b = true, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<2x4xf32, #dram>, tensor<5x4xf32, #dram>) -> tensor<2x5xf32, #l1>
  %2 = "ttnn.linear"(%x, %w, %b) {transpose_a = false, transpose_b = true, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x4xf32, #dram>, tensor<5x4xf32, #dram>, tensor<5xf32, #dram>) -> tensor<2x5xf32, #dram>
  %3 = "ttnn.linear"(%x, %w, %b) {transpose_a = false, transpose_b = true, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<2x4xf32, #dram>, tensor<5x4xf32, #dram>, tensor<5xf32, #dram>) -> tensor<2x5xf32, #l1> loc("illegal")
  return %3 : tensor<2x5xf32, #l1>
}

// -----

// Refused: a transposed left operand, also with square weights.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.linear, and ttnn {{.*}} does not take a bias after transposed operands in L1
#dram = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#l1 = #ttnn.layout<"Float32", "Tile", "L1", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<4x2xf32, #dram>, %s: tensor<4x4xf32, #dram>, %c: tensor<4xf32, #dram>) -> tensor<2x4xf32, #l1> {
  %0 = "ttnn.linear"(%x, %s) {transpose_a = true, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x2xf32, #dram>, tensor<4x4xf32, #dram>) -> tensor<2x4xf32, #l1>
  %1 = "ttnn.linear"(%x, %s, %c) {transpose_a = true, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4x2xf32, #dram>, tensor<4x4xf32, #dram>, tensor<4xf32, #dram>) -> tensor<2x4xf32, #dram>
  %2 = "ttnn.linear"(%x, %s, %c) {transpose_a = true, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4x2xf32, #dram>, tensor<4x4xf32, #dram>, tensor<4xf32, #dram>) -> tensor<2x4xf32, #l1> loc("illegal")
  return %2 : tensor<2x4xf32, #l1>
}

// -----

// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.linear, and ttnn {{.*}} does not take a bias of several rows in one tile
#dram = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x33: tensor<33x4xf32, #dram>, %x32: tensor<32x4xf32, #dram>, %w: tensor<4x4xf32, #dram>, %r33: tensor<33x4xf32, #dram>, %one: tensor<1x4xf32, #dram>, %r32: tensor<32x4xf32, #dram>) -> tensor<32x4xf32, #dram> {
  %0 = "ttnn.linear"(%x33, %w, %r33) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<33x4xf32, #dram>, tensor<4x4xf32, #dram>, tensor<33x4xf32, #dram>) -> tensor<33x4xf32, #dram>
  %1 = "ttnn.linear"(%x32, %w, %one) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<32x4xf32, #dram>, tensor<4x4xf32, #dram>, tensor<1x4xf32, #dram>) -> tensor<32x4xf32, #dram>
  %2 = "ttnn.linear"(%x32, %w, %r32) {transpose_a = false, transpose_b = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<32x4xf32, #dram>, tensor<4x4xf32, #dram>, tensor<32x4xf32, #dram>) -> tensor<32x4xf32, #dram> loc("illegal")
  return %2 : tensor<32x4xf32, #dram>
}

// -----

// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.arange, and ttnn {{.*}} does not take a result of UInt8
#i32 = #ttnn.layout<"Int32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#ui8 = #ttnn.layout<"UInt8", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main() -> (tensor<3xui8, #ui8>) {
  %0 = "ttnn.arange"() {start = 0.0 : f32, end = 3.0 : f32, step = 1.0 : f32} : () -> tensor<3xi32, #i32>
  %1 = "ttnn.arange"() {start = 0.0 : f32, end = 3.0 : f32, step = 1.0 : f32} : () -> tensor<3xui8, #ui8> loc("illegal")
  return %1 : tensor<3xui8, #ui8>
}

// -----

// In a sort along another dimension than the last one, the results are in the operand's memory.
// CHECK: ttnn.sort, and ttnn {{.*}} does not take a result in L1: it is in DRAM
#f32 = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#l1 = #ttnn.layout<"Float32", "Tile", "L1", "Interleaved", array<i64: 1, 1>>
#ui32 = #ttnn.layout<"UInt32", "Tile", "L1", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xf32, #f32>, %y: tensor<1x3xf32, #f32>) -> tensor<2x3xf32, #l1> {
  %0, %1 = "ttnn.sort"(%x) {dim = 1 : i64, descending = false, stable = false} : (tensor<2x3xf32, #f32>) -> (tensor<2x3xf32, #l1>, tensor<2x3xui32, #ui32>)
  %2, %3 = "ttnn.sort"(%y) {dim = 0 : i64, descending = false, stable = false} : (tensor<1x3xf32, #f32>) -> (tensor<1x3xf32, #l1>, tensor<1x3xui32, #ui32>)
  %4, %5 = "ttnn.sort"(%x) {dim = 0 : i64, descending = false, stable = false} : (tensor<2x3xf32, #f32>) -> (tensor<2x3xf32, #l1>, tensor<2x3xui32, #ui32>)
  return %4 : tensor<2x3xf32, #l1>
}

// -----

// If the padding fits into the last tile, the library returns its operand, so the memory is the operand's.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.pad, and ttnn {{.*}} does not take a result in L1: it is in DRAM
#dram = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#l1 = #ttnn.layout<"Float32", "Tile", "L1", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x32xf32, #dram>, %y: tensor<2x3xf32, #dram>) -> tensor<2x4xf32, #l1> {
  %0 = "ttnn.pad"(%x) {padding = array<i64: 0, 0, 0, 1>, value = 0.0 : f32} : (tensor<2x32xf32, #dram>) -> tensor<2x33xf32, #l1>
  %1 = "ttnn.pad"(%y) {padding = array<i64: 0, 0, 0, 1>, value = 0.0 : f32} : (tensor<2x3xf32, #dram>) -> tensor<2x4xf32, #l1> loc("illegal")
  return %1 : tensor<2x4xf32, #l1>
}

// -----

// Block floats become bfloat16 in row-major layout.
// CHECK: at loc("illegal")
// CHECK-NEXT: ttnn.to_layout, and ttnn {{.*}} does not take a result of Float32 in RowMajor: it is BFloat16 in RowMajor
#block = #ttnn.layout<"BFP_BFloat8", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
#bf16 = #ttnn.layout<"BFloat16", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#f32 = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xbf16, #block>) -> tensor<2x3xf32, #f32> {
  %0 = "ttnn.to_layout"(%x) : (tensor<2x3xbf16, #block>) -> tensor<2x3xbf16, #bf16>
  %1 = "ttnn.to_layout"(%x) : (tensor<2x3xbf16, #block>) -> tensor<2x3xf32, #f32> loc("illegal")
  return %1 : tensor<2x3xf32, #f32>
}

// -----

// Bytes cannot be converted to tiles.
// CHECK: ttnn.to_layout, and ttnn {{.*}} does not take a result of UInt8 in Tile: it is UInt8 in RowMajor
#rows = #ttnn.layout<"UInt8", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#tiles = #ttnn.layout<"UInt8", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xui8, #rows>) -> tensor<2x3xui8, #tiles> {
  %0 = "ttnn.to_layout"(%x) : (tensor<2x3xui8, #rows>) -> tensor<2x3xui8, #tiles>
  return %0 : tensor<2x3xui8, #tiles>
}

// -----

// An op of another dialect is refused.
// CHECK: error: ttir.abs is not supported in stage legality
// CHECK: ttir.abs, and ttnn {{.*}} does not take an op of another dialect
#tiles = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xf32, #tiles>) -> tensor<2x3xf32, #tiles> {
  %0 = "ttir.abs"(%x) : (tensor<2x3xf32, #tiles>) -> tensor<2x3xf32, #tiles>
  return %0 : tensor<2x3xf32, #tiles>
}

// -----

// The library promises only sums of floats between chips.
// CHECK: ttnn.all_reduce, and ttnn {{.*}} does not take an operand of Int32 in Tile
#tiles = #ttnn.layout<"Int32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<2x3xi32, #tiles>) -> tensor<2x3xi32, #tiles> {
  %0 = "ttnn.all_reduce"(%x) {cluster_axis = 1 : i64} : (tensor<2x3xi32, #tiles>) -> tensor<2x3xi32, #tiles>
  return %0 : tensor<2x3xi32, #tiles>
}

// -----

// CHECK: ttnn.reduce_scatter, and ttnn {{.*}} does not take a vector
#tiles = #ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", array<i64: 1, 1>>
func.func @main(%x: tensor<6xf32, #tiles>) -> tensor<3xf32, #tiles> {
  %0 = "ttnn.reduce_scatter"(%x) {scatter_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<6xf32, #tiles>) -> tensor<3xf32, #tiles>
  return %0 : tensor<3xf32, #tiles>
}

// -----

// A norm over several chips has at most one tile of rows.
// CHECK: ttnn.distributed_rms_norm, and ttnn {{.*}} does not take rows of the shape {{.*}}1, 1, 33, 64]
#rows = #ttnn.layout<"Float32", "Tile", "L1", "WidthSharded", array<i64: 1, 2>>
#weight = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#stats = #ttnn.layout<"Float32", "Tile", "L1", "WidthSharded", array<i64: 1, 1>>
module attributes {ttcore.mesh_shape = array<i64: 1, 4>} {
func.func @main(%x: tensor<1x1x33x64xf32, #rows>, %w: tensor<2x32xf32, #weight>, %s: tensor<1x1x32x128xf32, #stats>) -> tensor<1x1x33x64xf32, #rows> {
  %0 = "ttnn.distributed_rms_norm"(%x, %w, %s) {cluster_axis = 1 : i64, epsilon = 1.0e-5 : f32, semaphore = {global_id = 0 : i64}, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<1x1x33x64xf32, #rows>, tensor<2x32xf32, #weight>, tensor<1x1x32x128xf32, #stats>) -> tensor<1x1x33x64xf32, #rows>
  return %0 : tensor<1x1x33x64xf32, #rows>
}
}

// -----

// The library would take these statistics, and all chips would write to the only tile.
// CHECK: ttnn.distributed_rms_norm, and ttnn {{.*}} does not take statistics that do not have a tile of Float32 for each chip
#rows = #ttnn.layout<"Float32", "Tile", "L1", "WidthSharded", array<i64: 1, 2>>
#weight = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#stats = #ttnn.layout<"Float32", "Tile", "L1", "WidthSharded", array<i64: 1, 1>>
module attributes {ttcore.mesh_shape = array<i64: 1, 4>} {
func.func @main(%x: tensor<1x1x32x64xf32, #rows>, %w: tensor<2x32xf32, #weight>, %s: tensor<1x1x32x32xf32, #stats>) -> tensor<1x1x32x64xf32, #rows> {
  %0 = "ttnn.distributed_rms_norm"(%x, %w, %s) {cluster_axis = 1 : i64, epsilon = 1.0e-5 : f32, semaphore = {global_id = 0 : i64}, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<1x1x32x64xf32, #rows>, tensor<2x32xf32, #weight>, tensor<1x1x32x32xf32, #stats>) -> tensor<1x1x32x64xf32, #rows>
  return %0 : tensor<1x1x32x64xf32, #rows>
}
}

// -----

// Without a semaphore, no chip would wait for the others.
// CHECK: ttnn.distributed_rms_norm, and ttnn {{.*}} does not take an exchange without a semaphore
#rows = #ttnn.layout<"Float32", "Tile", "L1", "WidthSharded", array<i64: 1, 2>>
#weight = #ttnn.layout<"Float32", "RowMajor", "DRAM", "Interleaved", array<i64: 1, 1>>
#stats = #ttnn.layout<"Float32", "Tile", "L1", "WidthSharded", array<i64: 1, 1>>
module attributes {ttcore.mesh_shape = array<i64: 1, 4>} {
func.func @main(%x: tensor<1x1x32x64xf32, #rows>, %w: tensor<2x32xf32, #weight>, %s: tensor<1x1x32x128xf32, #stats>) -> tensor<1x1x32x64xf32, #rows> {
  %0 = "ttnn.distributed_rms_norm"(%x, %w, %s) {cluster_axis = 1 : i64, epsilon = 1.0e-5 : f32, operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<1x1x32x64xf32, #rows>, tensor<2x32xf32, #weight>, tensor<1x1x32x128xf32, #stats>) -> tensor<1x1x32x64xf32, #rows>
  return %0 : tensor<1x1x32x64xf32, #rows>
}
}
