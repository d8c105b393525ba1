// RUN: %opt --step ttir-to-ttnn --step workarounds %s | %check

// Attention of float32 becomes a product, a softmax and a product.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x2x4x32xf32>, %k: tensor<1x2x8x32xf32>, %v: tensor<1x2x8x32xf32>) -> tensor<1x2x4x32xf32> {
  // CHECK: [[Q:%[0-9]+]] = "ttnn.multiply"(%arg0
  // CHECK: [[S:%[0-9]+]] = "ttnn.matmul"([[Q]], %arg1) {{.*}}transpose_b = true
  // CHECK: [[P:%[0-9]+]] = "ttnn.softmax"([[S]])
  // CHECK: "ttnn.matmul"([[P]], %arg2)
  // CHECK-NOT: scaled_dot_product_attention
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x2x4x32xf32>, tensor<1x2x8x32xf32>, tensor<1x2x8x32xf32>) -> tensor<1x2x4x32xf32>
  return %0 : tensor<1x2x4x32xf32>
}

// -----

// Two query heads share each head of keys. Their rows are below one another, and the mask is repeated in this way, too.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x4x6x32xf32>, %k: tensor<1x2x8x32xf32>, %v: tensor<1x2x8x32xf32>, %m: tensor<1x1x6x8xf32>) -> tensor<1x4x6x32xf32> {
  // CHECK: [[G:%[0-9]+]] = "ttnn.reshape"(%arg0) {{.*}} -> tensor<1x2x12x32xf32
  // CHECK: [[Q:%[0-9]+]] = "ttnn.multiply"([[G]]
  // CHECK: [[S:%[0-9]+]] = "ttnn.matmul"([[Q]], %arg1) {{.*}} -> tensor<1x2x12x8xf32
  // CHECK: [[M:%[0-9]+]] = "ttnn.repeat"(%arg3) {repeat_dims = array<i64: 1, 1, 2, 1>}
  // CHECK: [[A:%[0-9]+]] = "ttnn.add"([[S]], [[M]])
  // CHECK: [[P:%[0-9]+]] = "ttnn.softmax"([[A]])
  // CHECK: [[R:%[0-9]+]] = "ttnn.matmul"([[P]], %arg2)
  // CHECK: "ttnn.reshape"([[R]]) {{.*}} -> tensor<1x4x6x32xf32
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v, %m) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<1x4x6x32xf32>, tensor<1x2x8x32xf32>, tensor<1x2x8x32xf32>, tensor<1x1x6x8xf32>) -> tensor<1x4x6x32xf32>
  return %0 : tensor<1x4x6x32xf32>
}

// -----

// The same with a mask for each query head.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x4x6x32xf32>, %k: tensor<1x2x8x32xf32>, %v: tensor<1x2x8x32xf32>, %m: tensor<1x4x6x8xf32>) -> tensor<1x4x6x32xf32> {
  // CHECK: [[G:%[0-9]+]] = "ttnn.reshape"(%arg0) {{.*}} -> tensor<1x2x12x32xf32
  // CHECK: [[Q:%[0-9]+]] = "ttnn.multiply"([[G]]
  // CHECK: [[S:%[0-9]+]] = "ttnn.matmul"([[Q]], %arg1) {{.*}} -> tensor<1x2x12x8xf32
  // CHECK: [[M:%[0-9]+]] = "ttnn.reshape"(%arg3) {{.*}} -> tensor<1x2x12x8xf32
  // CHECK: [[A:%[0-9]+]] = "ttnn.add"([[S]], [[M]])
  // CHECK: [[P:%[0-9]+]] = "ttnn.softmax"([[A]])
  // CHECK: [[R:%[0-9]+]] = "ttnn.matmul"([[P]], %arg2)
  // CHECK: "ttnn.reshape"([[R]]) {{.*}} -> tensor<1x4x6x32xf32
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v, %m) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<1x4x6x32xf32>, tensor<1x2x8x32xf32>, tensor<1x2x8x32xf32>, tensor<1x4x6x8xf32>) -> tensor<1x4x6x32xf32>
  return %0 : tensor<1x4x6x32xf32>
}

// -----

// A mask for all heads and rows is broadcast.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x4x6x32xf32>, %k: tensor<1x2x8x32xf32>, %v: tensor<1x2x8x32xf32>, %m: tensor<1x1x1x8xf32>) -> tensor<1x4x6x32xf32> {
  // CHECK: [[G:%[0-9]+]] = "ttnn.reshape"(%arg0) {{.*}} -> tensor<1x2x12x32xf32
  // CHECK: [[Q:%[0-9]+]] = "ttnn.multiply"([[G]]
  // CHECK: [[S:%[0-9]+]] = "ttnn.matmul"([[Q]], %arg1) {{.*}} -> tensor<1x2x12x8xf32
  // CHECK: [[A:%[0-9]+]] = "ttnn.add"([[S]], %arg3)
  // CHECK: [[P:%[0-9]+]] = "ttnn.softmax"([[A]])
  // CHECK: [[R:%[0-9]+]] = "ttnn.matmul"([[P]], %arg2)
  // CHECK: "ttnn.reshape"([[R]]) {{.*}} -> tensor<1x4x6x32xf32
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %v, %m) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<1x4x6x32xf32>, tensor<1x2x8x32xf32>, tensor<1x2x8x32xf32>, tensor<1x1x1x8xf32>) -> tensor<1x4x6x32xf32>
  return %0 : tensor<1x4x6x32xf32>
}

// -----

// Attention that the fused op takes does not change.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x2x4x32xbf16>, %k: tensor<1x2x8x32xbf16>, %m: tensor<1x1x4x8xbf16>) -> tensor<1x2x4x32xbf16> {
  // CHECK: "ttnn.scaled_dot_product_attention"(%arg0, %arg1, %arg1, %arg2)
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %k, %m) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<1x2x4x32xbf16>, tensor<1x2x8x32xbf16>, tensor<1x2x8x32xbf16>, tensor<1x1x4x8xbf16>) -> tensor<1x2x4x32xbf16>
  return %0 : tensor<1x2x4x32xbf16>
}

// -----

// A mask that is broadcast along its rows is repeated.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x2x4x32xbf16>, %k: tensor<1x2x8x32xbf16>, %m: tensor<1x1x1x8xbf16>) -> tensor<1x2x4x32xbf16> {
  // CHECK: [[M:%[0-9]+]] = "ttnn.repeat"(%arg2) {repeat_dims = array<i64: 1, 1, 4, 1>}
  // CHECK: "ttnn.scaled_dot_product_attention"(%arg0, %arg1, %arg1, [[M]]) {is_causal = false, {{.*}}scale = 5.000000e-01
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %k, %m) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<1x2x4x32xbf16>, tensor<1x2x8x32xbf16>, tensor<1x2x8x32xbf16>, tensor<1x1x1x8xbf16>) -> tensor<1x2x4x32xbf16>
  return %0 : tensor<1x2x4x32xbf16>
}

// -----

// A mask that is broadcast along its columns is repeated, too.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x2x4x32xbf16>, %k: tensor<1x2x8x32xbf16>, %m: tensor<1x2x4x1xbf16>) -> tensor<1x2x4x32xbf16> {
  // CHECK: [[M:%[0-9]+]] = "ttnn.repeat"(%arg2) {repeat_dims = array<i64: 1, 1, 1, 8>}
  // CHECK: "ttnn.scaled_dot_product_attention"(%arg0, %arg1, %arg1, [[M]])
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %k, %m) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<1x2x4x32xbf16>, tensor<1x2x8x32xbf16>, tensor<1x2x8x32xbf16>, tensor<1x2x4x1xbf16>) -> tensor<1x2x4x32xbf16>
  return %0 : tensor<1x2x4x32xbf16>
}

// -----

// Heads that are not whole tiles: the mask is added to the scores as it is.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x2x4x8xbf16>, %k: tensor<1x2x8x8xbf16>, %m: tensor<1x1x1x8xbf16>) -> tensor<1x2x4x8xbf16> {
  // CHECK: [[S:%[0-9]+]] = "ttnn.matmul"
  // CHECK: "ttnn.add"([[S]], %arg2)
  // CHECK-NOT: scaled_dot_product_attention
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %k, %m) {is_causal = false, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<1x2x4x8xbf16>, tensor<1x2x8x8xbf16>, tensor<1x2x8x8xbf16>, tensor<1x1x1x8xbf16>) -> tensor<1x2x4x8xbf16>
  return %0 : tensor<1x2x4x8xbf16>
}

// -----

// If there are fewer queries than keys, a causal mask is made.
// CHECK-LABEL: @main(
func.func @main(%q: tensor<1x2x4x32xbf16>, %k: tensor<1x2x8x32xbf16>) -> tensor<1x2x4x32xbf16> {
  // CHECK: [[W:%[0-9]+]] = "ttnn.where"
  // CHECK: [[M:%[0-9]+]] = "ttnn.reshape"([[W]]) {{.*}} -> tensor<1x1x4x8xbf16
  // CHECK: "ttnn.scaled_dot_product_attention"(%arg0, %arg1, %arg1, [[M]]) {is_causal = false
  %0 = "ttir.scaled_dot_product_attention"(%q, %k, %k) {is_causal = true, scale = 0.5 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x2x4x32xbf16>, tensor<1x2x8x32xbf16>, tensor<1x2x8x32xbf16>) -> tensor<1x2x4x32xbf16>
  return %0 : tensor<1x2x4x32xbf16>
}

// -----

// Indices are unsigned, in row-major layout.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>) -> tensor<2xi32> {
  // CHECK: [[I:%[0-9]+]] = "ttnn.argmax"(%arg0) {{.*}} -> tensor<2xui32, {{.*}}"RowMajor"
  // CHECK: "ttnn.typecast"([[I]]) {{.*}} -> tensor<2xi32, {{.*}}"RowMajor"
  %0 = "ttir.argmax"(%x) {dim_arg = array<i64: 1>, keep_dim = false} : (tensor<2x3xf32>) -> tensor<2xi32>
  return %0 : tensor<2xi32>
}

// -----

// Floats are searched along any dimension.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>) -> tensor<3xi32> {
  // CHECK-NOT: ttnn.permute
  // CHECK: "ttnn.argmax"(%arg0) {dim = 0
  %0 = "ttir.argmax"(%x) {dim_arg = array<i64: 0>, keep_dim = false} : (tensor<2x3xf32>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}

// -----

// Integers are searched only along the last dimension.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xi32>) -> tensor<3xi32> {
  // CHECK: [[T:%[0-9]+]] = "ttnn.permute"(%arg0) {permutation = array<i64: 1, 0>}
  // CHECK: "ttnn.argmax"([[T]]) {dim = 1
  %0 = "ttir.argmax"(%x) {dim_arg = array<i64: 0>, keep_dim = false} : (tensor<2x3xi32>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}

// -----

// Padding at the beginning is done in row-major layout, padding at the end in tiles.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>) {
  // CHECK: "ttnn.pad"(%arg0) {padding = array<i64: 1, 0, 0, 0>{{.*}} -> tensor<3x3xf32, {{.*}}"RowMajor"
  // CHECK: "ttnn.pad"(%arg0) {padding = array<i64: 0, 1, 0, 0>{{.*}} -> tensor<3x3xf32, {{.*}}"Tile"
  %0 = "ttir.pad"(%x) {padding = array<i64: 1, 0, 0, 0>, value = 0.0 : f32} : (tensor<2x3xf32>) -> tensor<3x3xf32>
  %1 = "ttir.pad"(%x) {padding = array<i64: 0, 1, 0, 0>, value = 0.0 : f32} : (tensor<2x3xf32>) -> tensor<3x3xf32>
  return %0, %1 : tensor<3x3xf32>, tensor<3x3xf32>
}

// -----

// Rows of float32 tables are gathered, with positions that are converted before they are repeated; for bfloat16 tables,
// the embedding does not change.
// CHECK-LABEL: @main(
func.func @main(%i: tensor<4xi32>, %a: tensor<9x5xf32>, %b: tensor<9x5xbf16>) -> (tensor<4x5xf32>, tensor<4x5xbf16>) {
  // CHECK: "ttnn.repeat"({{.*}}) {repeat_dims = array<i64: 1, 5>} : (tensor<4x1xui32,
  // CHECK: "ttnn.gather"(%arg1, {{.*}}) {dim = 0
  // CHECK: "ttnn.embedding"(%arg0, %arg2)
  %0 = "ttir.embedding"(%i, %a) : (tensor<4xi32>, tensor<9x5xf32>) -> tensor<4x5xf32>
  %1 = "ttir.embedding"(%i, %b) : (tensor<4xi32>, tensor<9x5xbf16>) -> tensor<4x5xbf16>
  return %0, %1 : tensor<4x5xf32>, tensor<4x5xbf16>
}

// -----

// Positions that are reshaped for an embedding are reshaped once.
// CHECK-LABEL: @main(
func.func @main(%i: tensor<2x2xi32>, %a: tensor<9x5xf32>) -> tensor<4x5xf32> {
  // CHECK: "ttnn.reshape"([[I:%arg0|%[0-9]+]]) {shape = array<i64: 4, 1>} : (tensor<2x2xi32
  // CHECK-NOT: ttnn.reshape
  %0 = "ttir.reshape"(%i) {shape = array<i64: 4>} : (tensor<2x2xi32>) -> tensor<4xi32>
  %1 = "ttir.embedding"(%0, %a) : (tensor<4xi32>, tensor<9x5xf32>) -> tensor<4x5xf32>
  return %1 : tensor<4x5xf32>
}

// -----

// Matrices of integers are multiplied element by element.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<2x3xi32>, %b: tensor<3x4xi32>) -> tensor<2x4xi32> {
  // CHECK: "ttnn.multiply"({{.*}}) {{.*}} -> tensor<2x3x4xi32
  // CHECK: "ttnn.sum"({{.*}}) {dim_arg = array<i64: 1>
  %0 = "ttir.matmul"(%a, %b) {transpose_a = false, transpose_b = false} : (tensor<2x3xi32>, tensor<3x4xi32>) -> tensor<2x4xi32>
  return %0 : tensor<2x4xi32>
}

// -----

// Powers of integers get a number as exponent.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<2x3xi32>) -> tensor<2x3xi32> {
  // CHECK: "ttnn.pow_scalar"(%arg0) {rhs = {I32 = {value = 3 : i64}}}
  %0 = "ttir.full"() {shape = array<i64: 1>, fill_value = 3 : i64} : () -> tensor<1xi32>
  %1 = "ttir.pow"(%a, %0) : (tensor<2x3xi32>, tensor<1xi32>) -> tensor<2x3xi32>
  return %1 : tensor<2x3xi32>
}

// -----

// The exponent may have more elements than the base.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<1xi32>) -> tensor<2x3xi32> {
  // CHECK: "ttnn.pow_scalar"(%arg0) {rhs = {I32 = {value = 3 : i64}}}
  // CHECK: "ttnn.repeat"({{.*}}) {repeat_dims = array<i64: 2, 3>}
  %0 = "ttir.full"() {shape = array<i64: 2, 3>, fill_value = 3 : i64} : () -> tensor<2x3xi32>
  %1 = "ttir.pow"(%a, %0) : (tensor<1xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
  return %1 : tensor<2x3xi32>
}

// -----

// Integers are divided twice as floats, after the remainder with the sign of the dividend was subtracted.
// CHECK-LABEL: @main(
func.func @main(%a: tensor<2x3xi32>, %b: tensor<2x3xi32>) -> tensor<2x3xi32> {
  // CHECK: [[R:%[0-9]+]] = "ttnn.remainder"(%arg0, %arg1)
  // CHECK: [[S:%[0-9]+]] = "ttnn.subtract"([[R]],
  // CHECK: "ttnn.subtract"(%arg0, [[S]])
  // CHECK: "ttnn.divide"({{.*}}) : (tensor<2x3xf32
  // CHECK: "ttnn.divide"({{.*}}) : (tensor<2x3xf32
  // CHECK-NOT: ttnn.divide
  %0 = "ttir.divide"(%a, %b) : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

// -----

// Elements of a vector are gathered from a matrix.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<5xf32>, %i: tensor<3xi32>) -> tensor<3xf32> {
  // CHECK: "ttnn.gather"({{.*}}) {dim = 1 {{.*}} -> tensor<1x3xf32
  %0 = "ttir.gather"(%x, %i) {dim = 0 : i64} : (tensor<5xf32>, tensor<3xi32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

// Positions in float32 values are UINT32. Positions in bfloat16 values are UINT16.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x5xf32>, %y: tensor<2x5xbf16>) -> (tensor<2x5xi32>, tensor<2x5xi32>) {
  // CHECK: "ttnn.sort"(%arg0) {{.*}} -> ({{.*}}, tensor<2x5xui32
  // CHECK: "ttnn.sort"(%arg1) {{.*}} -> ({{.*}}, tensor<2x5xui16
  %0, %1 = "ttir.sort"(%x) {dim = 1 : i64, descending = false, stable = false} : (tensor<2x5xf32>) -> (tensor<2x5xf32>, tensor<2x5xi32>)
  %2, %3 = "ttir.sort"(%y) {dim = 1 : i64, descending = false, stable = false} : (tensor<2x5xbf16>) -> (tensor<2x5xbf16>, tensor<2x5xi32>)
  return %1, %3 : tensor<2x5xi32>, tensor<2x5xi32>
}

// -----

// For max pooling of float32, the nine elements of each window are gathered.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x64x4xf32>) -> tensor<1x1x16x4xf32> {
  // CHECK: [[G:%[0-9]+]] = "ttnn.gather"(%arg0, {{.*}} -> tensor<1x1x144x4xf32
  // CHECK: [[W:%[0-9]+]] = "ttnn.reshape"([[G]]) {{.*}} -> tensor<1x9x16x4xf32
  // CHECK: "ttnn.max"([[W]]) {{.*}} -> tensor<1x1x16x4xf32
  // CHECK-NOT: max_pool2d
  %0 = "ttir.max_pool2d"(%x) {batch_size = 1 : i64, input_height = 8 : i64, input_width = 8 : i64, channels = 4 : i64, kernel_size = array<i64: 3, 3>, stride = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilation = array<i64: 1, 1>} : (tensor<1x1x64x4xf32>) -> tensor<1x1x16x4xf32>
  return %0 : tensor<1x1x16x4xf32>
}

// -----

// The positions of max pooling are in row-major layout.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x64x4xbf16>) -> tensor<1x1x16x4xi32> {
  // CHECK: "ttnn.max_pool2d_with_indices"(%arg0) {{.*}} -> (tensor<1x1x16x4xbf16, {{.*}}"RowMajor"{{.*}}tensor<1x1x16x4xui16, {{.*}}"RowMajor"
  %0, %1 = "ttir.max_pool2d_with_indices"(%x) {batch_size = 1 : i64, input_height = 8 : i64, input_width = 8 : i64, channels = 4 : i64, kernel_size = array<i64: 2, 2>, stride = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (tensor<1x1x64x4xbf16>) -> (tensor<1x1x16x4xbf16>, tensor<1x1x16x4xi32>)
  return %1 : tensor<1x1x16x4xi32>
}

// -----

// A scatter of the maximum becomes comparisons.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x5xf32>, %i: tensor<2x3xi32>, %s: tensor<2x3xf32>) -> tensor<2x5xf32> {
  // CHECK: "ttnn.eq"({{.*}} -> tensor<2x3x5xbf16
  // CHECK: "ttnn.where"({{.*}} -> tensor<2x3x5xf32
  // CHECK: [[M:%[0-9]+]] = "ttnn.max"({{.*}} -> tensor<2x5xf32
  // CHECK: "ttnn.maximum"(%arg0, [[M]])
  %0 = "ttir.scatter"(%x, %i, %s) {dim = 1 : i64, scatter_reduce_type = "Max"} : (tensor<2x5xf32>, tensor<2x3xi32>, tensor<2x3xf32>) -> tensor<2x5xf32>
  return %0 : tensor<2x5xf32>
}

// -----

// A depthwise convolution along a row gets a bias, and a narrow image is padded.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x1x20x3xf32>, %w: tensor<3x1x1x3xf32>, %y: tensor<1x1x40x3xf32>, %v: tensor<6x3x1x1xf32>) -> (tensor<1x1x18x3xf32>, tensor<1x1x40x6xf32>) {
  // CHECK: [[B:%[0-9]+]] = "ttnn.full"() {fill_value = {FP = {value = 0.0{{.*}} -> tensor<1x1x1x3xf32
  // CHECK: "ttnn.conv2d"(%arg0, %arg1, [[B]])
  // CHECK: "ttnn.conv2d"(%arg2, %arg3) {{.*}}padding = array<i64: 19, 0, 0, 1>{{.*}} -> tensor<1x1x60x6xf32
  // CHECK: "ttnn.slice_static"({{.*}} -> tensor<1x20x2x6xf32
  %0 = "ttir.conv2d"(%x, %w) {batch_size = 1 : i64, input_height = 1 : i64, input_width = 20 : i64, in_channels = 3 : i64, out_channels = 3 : i64, kernel_size = array<i64: 1, 3>, stride = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 3 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x20x3xf32>, tensor<3x1x1x3xf32>) -> tensor<1x1x18x3xf32>
  %1 = "ttir.conv2d"(%y, %v) {batch_size = 1 : i64, input_height = 20 : i64, input_width = 2 : i64, in_channels = 3 : i64, out_channels = 6 : i64, kernel_size = array<i64: 1, 1>, stride = array<i64: 2, 1>, padding = array<i64: 19, 0, 0, 0>, dilation = array<i64: 1, 1>, groups = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x1x40x3xf32>, tensor<6x3x1x1xf32>) -> tensor<1x1x40x6xf32>
  return %0, %1 : tensor<1x1x18x3xf32>, tensor<1x1x40x6xf32>
}

// -----

// Large filters are scaled and converted as a matrix. The host reshapes them to the matrix and back.
// CHECK-LABEL: @main(
func.func @main(%w: tensor<256x128x1x1xf32> {ttcore.argument_type = "parameter"}, %s: tensor<256x1x1x1xf32> {ttcore.argument_type = "parameter"}) -> tensor<256x128x1x1xbf16> {
  // CHECK: [[W:%[0-9]+]] = "ttnn.reshape"(%arg0) {{.*}} -> tensor<256x128xf32, {{.*}}"SystemMemory"
  // CHECK: [[S:%[0-9]+]] = "ttnn.reshape"(%arg1) {{.*}} -> tensor<256x1xf32, {{.*}}"DRAM"
  // CHECK: [[P:%[0-9]+]] = "ttnn.multiply"([[W]], [[S]]) {{.*}} -> tensor<256x128xf32
  // CHECK: [[T:%[0-9]+]] = "ttnn.typecast"([[P]]) {{.*}} -> tensor<256x128xbf16
  // CHECK: "ttnn.reshape"([[T]]) {{.*}} -> tensor<256x128x1x1xbf16, {{.*}}"SystemMemory"
  %0 = "ttir.multiply"(%w, %s) : (tensor<256x128x1x1xf32>, tensor<256x1x1x1xf32>) -> tensor<256x128x1x1xf32>
  %1 = "ttir.typecast"(%0) {dtype = bf16} : (tensor<256x128x1x1xf32>) -> tensor<256x128x1x1xbf16>
  return %1 : tensor<256x128x1x1xbf16>
}

// -----

// The scales of large filters may be computed, too.
// CHECK-LABEL: @main(
func.func @main(%w: tensor<256x128x1x1xf32> {ttcore.argument_type = "parameter"}, %s: tensor<256x1x1x1xf32> {ttcore.argument_type = "parameter"}) -> tensor<256x128x1x1xf32> {
  // CHECK: [[S:%[0-9]+]] = "ttnn.multiply"(%arg1, %arg1) {{.*}} -> tensor<256x1x1x1xf32
  // CHECK: [[R:%[0-9]+]] = "ttnn.reshape"([[S]]) {{.*}} -> tensor<256x1xf32
  // CHECK: "ttnn.multiply"({{%[0-9]+}}, [[R]]) {{.*}} -> tensor<256x128xf32
  %0 = "ttir.multiply"(%s, %s) : (tensor<256x1x1x1xf32>, tensor<256x1x1x1xf32>) -> tensor<256x1x1x1xf32>
  %1 = "ttir.multiply"(%w, %0) : (tensor<256x128x1x1xf32>, tensor<256x1x1x1xf32>) -> tensor<256x128x1x1xf32>
  return %1 : tensor<256x128x1x1xf32>
}

// -----

// Values that depend on an input, and small filters, do not change.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<256x128x1x1xf32>, %w: tensor<8x4x3x3xf32> {ttcore.argument_type = "parameter"}) -> (tensor<256x128x1x1xbf16>, tensor<8x4x3x3xbf16>) {
  // CHECK: "ttnn.typecast"(%arg0)
  // CHECK: "ttnn.typecast"(%arg1)
  %0 = "ttir.typecast"(%x) {dtype = bf16} : (tensor<256x128x1x1xf32>) -> tensor<256x128x1x1xbf16>
  %1 = "ttir.typecast"(%w) {dtype = bf16} : (tensor<8x4x3x3xf32>) -> tensor<8x4x3x3xbf16>
  return %0, %1 : tensor<256x128x1x1xbf16>, tensor<8x4x3x3xbf16>
}

// -----

// Heads of whole tiles keep their ops; other heads are sliced and permuted.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<1x4x48xf32>, %h: tensor<1x2x4x8xf32>, %w: tensor<1x2x4x32xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x4x16xf32>, tensor<1x4x64xf32>) {
  // CHECK: [[K:%[0-9]+]] = "ttnn.slice_static"(%arg0) {{.*}}begins = array<i64: 0, 0, 16>
  // CHECK: [[A:%[0-9]+]] = "ttnn.reshape"([[K]])
  // CHECK: "ttnn.permute"([[A]]) {{.*}} -> tensor<1x2x4x8xf32
  // CHECK: "ttnn.permute"(%arg1) {{.*}} -> tensor<1x4x2x8xf32
  // CHECK: "ttnn.concatenate_heads"(%arg2)
  %q, %k, %v = "ttir.split_query_key_value_and_split_heads"(%x) {num_heads = 2 : i64, transpose_key = false, operandSegmentSizes = array<i32: 1, 0>} : (tensor<1x4x48xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>)
  %0 = "ttir.concatenate_heads"(%h) : (tensor<1x2x4x8xf32>) -> tensor<1x4x16xf32>
  %1 = "ttir.concatenate_heads"(%w) : (tensor<1x2x4x32xf32>) -> tensor<1x4x64xf32>
  return %k, %0, %1 : tensor<1x2x4x8xf32>, tensor<1x4x16xf32>, tensor<1x4x64xf32>
}

// -----

// Bytes are added as integers. An average over a whole image becomes a mean.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xui8>, %y: tensor<2x1x8x3xf32>) -> (tensor<2x3xui8>, tensor<1x1x2x3xf32>) {
  // CHECK: "ttnn.add"({{.*}} -> tensor<2x3xi32
  // CHECK: "ttnn.bitwise_and"
  // CHECK: "ttnn.typecast"({{.*}} -> tensor<2x3xui8
  // CHECK: "ttnn.mean"({{.*}} {dim_arg = array<i64: 2>
  %0 = "ttir.add"(%x, %x) : (tensor<2x3xui8>, tensor<2x3xui8>) -> tensor<2x3xui8>
  %1 = "ttir.reshape"(%y) {shape = array<i64: 1, 1, 16, 3>} : (tensor<2x1x8x3xf32>) -> tensor<1x1x16x3xf32>
  %2 = "ttir.avg_pool2d"(%1) {batch_size = 2 : i64, input_height = 2 : i64, input_width = 4 : i64, channels = 3 : i64, kernel_size = array<i64: 2, 4>, stride = array<i64: 2, 4>, padding = array<i64: 0, 0, 0, 0>, dilation = array<i64: 1, 1>} : (tensor<1x1x16x3xf32>) -> tensor<1x1x2x3xf32>
  return %0, %2 : tensor<2x3xui8>, tensor<1x1x2x3xf32>
}

// -----

// Bytes of an input are converted before they become tiles.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xui8>) -> tensor<2x3xf32> {
  // CHECK: "ttnn.typecast"(%arg0) {{.*}} -> tensor<2x3xf32, #ttnn.layout<"Float32", "RowMajor"
  %0 = "ttir.typecast"(%x) {dtype = f32} : (tensor<2x3xui8>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// The sign of an integer is the integer clamped to -1 .. 1.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xi32>) -> tensor<2x3xi32> {
  // CHECK: "ttnn.maximum"({{.*}} -> tensor<2x3xi32
  // CHECK: "ttnn.minimum"({{.*}} -> tensor<2x3xi32
  // CHECK-NOT: "ttnn.sign"
  %0 = "ttir.sign"(%x) : (tensor<2x3xi32>) -> tensor<2x3xi32>
  return %0 : tensor<2x3xi32>
}

// -----

// A vector is summed and scattered as a matrix with one row.
// CHECK-LABEL: @main(
module attributes {ttcore.mesh_shape = array<i64: 1, 2>} {
func.func @main(%x: tensor<6xf32>, %y: tensor<6x2xf32>) -> (tensor<3xf32>, tensor<3x2xf32>) {
  // CHECK: [[R:%[0-9]+]] = "ttnn.reshape"(%arg0) {shape = array<i64: 1, 6>}
  // CHECK: [[S:%[0-9]+]] = "ttnn.reduce_scatter"([[R]]) {cluster_axis = 1 : i64, scatter_dim = 1 : i64} : {{.*}} -> tensor<1x3xf32
  // CHECK: "ttnn.reshape"([[S]]) {shape = array<i64: 3>}
  // CHECK: "ttnn.reduce_scatter"(%arg1) {cluster_axis = 1 : i64, scatter_dim = 0 : i64} : {{.*}} -> tensor<3x2xf32
  %0 = "ttir.reduce_scatter"(%x) {scatter_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<6xf32>) -> tensor<3xf32>
  %1 = "ttir.reduce_scatter"(%y) {scatter_dim = 0 : i64, cluster_axis = 1 : i64} : (tensor<6x2xf32>) -> tensor<3x2xf32>
  return %0, %1 : tensor<3xf32>, tensor<3x2xf32>
}
}
