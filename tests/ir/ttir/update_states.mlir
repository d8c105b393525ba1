// RUN: %opt --step update-states %s | %check

// A write to one position of a state (B, H, S, D) updates it. The rows of each user come in the order (1, H, B, D).
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<2x3x8x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %p: tensor<1xi32> {ttcore.argument_type = "input"}, %x: tensor<2x3x1x4xf32> {ttcore.argument_type = "input"}) -> (tensor<2x3x8x4xf32>) {
  // CHECK: %[[ROWS:.*]] = "ttir.permute"(%arg2) {permutation = array<i64: 2, 1, 0, 3>}
  // CHECK-NEXT: %[[NEW:.*]] = "ttir.update_cache"(%arg0, %[[ROWS]], %arg1) {batch_offset = 0 : i64}
  // CHECK-NEXT: return %[[NEW]]
  %0 = "ttir.reshape"(%p) {shape = array<i64: 1, 1, 1, 1>} : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
  %1 = "ttir.broadcast"(%0) {broadcast_dimensions = array<i64: 2, 3, 1, 4>} : (tensor<1x1x1x1xi32>) -> tensor<2x3x1x4xi32>
  %2 = "ttir.scatter"(%cache, %1, %x) {dim = 2 : i64, scatter_reduce_type = "Invalid"} : (tensor<2x3x8x4xf32>, tensor<2x3x1x4xi32>, tensor<2x3x1x4xf32>) -> tensor<2x3x8x4xf32>
  return %2 : tensor<2x3x8x4xf32>
}

// -----

// Another op reads the old values.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<2x3x8x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %p: tensor<1xi32> {ttcore.argument_type = "input"}, %x: tensor<2x3x1x4xf32> {ttcore.argument_type = "input"}) -> (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) {
  // CHECK-NOT: ttir.update_cache
  %0 = "ttir.reshape"(%p) {shape = array<i64: 1, 1, 1, 1>} : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
  %1 = "ttir.broadcast"(%0) {broadcast_dimensions = array<i64: 2, 3, 1, 4>} : (tensor<1x1x1x1xi32>) -> tensor<2x3x1x4xi32>
  %2 = "ttir.scatter"(%cache, %1, %x) {dim = 2 : i64, scatter_reduce_type = "Invalid"} : (tensor<2x3x8x4xf32>, tensor<2x3x1x4xi32>, tensor<2x3x1x4xf32>) -> tensor<2x3x8x4xf32>
  %3 = "ttir.abs"(%cache) : (tensor<2x3x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %2, %3 : tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>
}

// -----

// The old values are a result.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<2x3x8x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %p: tensor<1xi32> {ttcore.argument_type = "input"}, %x: tensor<2x3x1x4xf32> {ttcore.argument_type = "input"}) -> (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) {
  // CHECK-NOT: ttir.update_cache
  %0 = "ttir.reshape"(%p) {shape = array<i64: 1, 1, 1, 1>} : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
  %1 = "ttir.broadcast"(%0) {broadcast_dimensions = array<i64: 2, 3, 1, 4>} : (tensor<1x1x1x1xi32>) -> tensor<2x3x1x4xi32>
  %2 = "ttir.scatter"(%cache, %1, %x) {dim = 2 : i64, scatter_reduce_type = "Invalid"} : (tensor<2x3x8x4xf32>, tensor<2x3x1x4xi32>, tensor<2x3x1x4xf32>) -> tensor<2x3x8x4xf32>
  return %2, %cache : tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>
}

// -----

// An input that is no state keeps its values.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<2x3x8x4xf32> {ttcore.argument_type = "input"}, %p: tensor<1xi32> {ttcore.argument_type = "input"}, %x: tensor<2x3x1x4xf32> {ttcore.argument_type = "input"}) -> (tensor<2x3x8x4xf32>) {
  // CHECK-NOT: ttir.update_cache
  %0 = "ttir.reshape"(%p) {shape = array<i64: 1, 1, 1, 1>} : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
  %1 = "ttir.broadcast"(%0) {broadcast_dimensions = array<i64: 2, 3, 1, 4>} : (tensor<1x1x1x1xi32>) -> tensor<2x3x1x4xi32>
  %2 = "ttir.scatter"(%cache, %1, %x) {dim = 2 : i64, scatter_reduce_type = "Invalid"} : (tensor<2x3x8x4xf32>, tensor<2x3x1x4xi32>, tensor<2x3x1x4xf32>) -> tensor<2x3x8x4xf32>
  return %2 : tensor<2x3x8x4xf32>
}

// -----

// The new value of the state is another result.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<2x3x8x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 1 : i32}, %p: tensor<1xi32> {ttcore.argument_type = "input"}, %x: tensor<2x3x1x4xf32> {ttcore.argument_type = "input"}) -> (tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>) {
  // CHECK-NOT: ttir.update_cache
  %0 = "ttir.reshape"(%p) {shape = array<i64: 1, 1, 1, 1>} : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
  %1 = "ttir.broadcast"(%0) {broadcast_dimensions = array<i64: 2, 3, 1, 4>} : (tensor<1x1x1x1xi32>) -> tensor<2x3x1x4xi32>
  %2 = "ttir.scatter"(%cache, %1, %x) {dim = 2 : i64, scatter_reduce_type = "Invalid"} : (tensor<2x3x8x4xf32>, tensor<2x3x1x4xi32>, tensor<2x3x1x4xf32>) -> tensor<2x3x8x4xf32>
  %3 = "ttir.abs"(%x) : (tensor<2x3x1x4xf32>) -> tensor<2x3x1x4xf32>
  %4 = "ttir.broadcast"(%3) {broadcast_dimensions = array<i64: 1, 1, 8, 1>} : (tensor<2x3x1x4xf32>) -> tensor<2x3x8x4xf32>
  return %2, %4 : tensor<2x3x8x4xf32>, tensor<2x3x8x4xf32>
}

// -----

// A sum with the old values is no write.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<2x3x8x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %p: tensor<1xi32> {ttcore.argument_type = "input"}, %x: tensor<2x3x1x4xf32> {ttcore.argument_type = "input"}) -> (tensor<2x3x8x4xf32>) {
  // CHECK-NOT: ttir.update_cache
  %0 = "ttir.reshape"(%p) {shape = array<i64: 1, 1, 1, 1>} : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
  %1 = "ttir.broadcast"(%0) {broadcast_dimensions = array<i64: 2, 3, 1, 4>} : (tensor<1x1x1x1xi32>) -> tensor<2x3x1x4xi32>
  %2 = "ttir.scatter"(%cache, %1, %x) {dim = 2 : i64, scatter_reduce_type = "Sum"} : (tensor<2x3x8x4xf32>, tensor<2x3x1x4xi32>, tensor<2x3x1x4xf32>) -> tensor<2x3x8x4xf32>
  return %2 : tensor<2x3x8x4xf32>
}

// -----

// The position is one of the heads, and not one of the sequence.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<2x3x8x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %p: tensor<1xi32> {ttcore.argument_type = "input"}, %x: tensor<2x1x8x4xf32> {ttcore.argument_type = "input"}) -> (tensor<2x3x8x4xf32>) {
  // CHECK-NOT: ttir.update_cache
  %0 = "ttir.reshape"(%p) {shape = array<i64: 1, 1, 1, 1>} : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
  %1 = "ttir.broadcast"(%0) {broadcast_dimensions = array<i64: 2, 1, 8, 4>} : (tensor<1x1x1x1xi32>) -> tensor<2x1x8x4xi32>
  %2 = "ttir.scatter"(%cache, %1, %x) {dim = 1 : i64, scatter_reduce_type = "Invalid"} : (tensor<2x3x8x4xf32>, tensor<2x1x8x4xi32>, tensor<2x1x8x4xf32>) -> tensor<2x3x8x4xf32>
  return %2 : tensor<2x3x8x4xf32>
}

// -----

// Two positions are written.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<2x3x8x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %p: tensor<2xi32> {ttcore.argument_type = "input"}, %x: tensor<2x3x2x4xf32> {ttcore.argument_type = "input"}) -> (tensor<2x3x8x4xf32>) {
  // CHECK-NOT: ttir.update_cache
  %0 = "ttir.reshape"(%p) {shape = array<i64: 1, 1, 2, 1>} : (tensor<2xi32>) -> tensor<1x1x2x1xi32>
  %1 = "ttir.broadcast"(%0) {broadcast_dimensions = array<i64: 2, 3, 1, 4>} : (tensor<1x1x2x1xi32>) -> tensor<2x3x2x4xi32>
  %2 = "ttir.scatter"(%cache, %1, %x) {dim = 2 : i64, scatter_reduce_type = "Invalid"} : (tensor<2x3x8x4xf32>, tensor<2x3x2x4xi32>, tensor<2x3x2x4xf32>) -> tensor<2x3x8x4xf32>
  return %2 : tensor<2x3x8x4xf32>
}

// -----

// All users have one position, but only the first users are written.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<2x3x8x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %p: tensor<1xi32> {ttcore.argument_type = "input"}, %x: tensor<1x3x1x4xf32> {ttcore.argument_type = "input"}) -> (tensor<2x3x8x4xf32>) {
  // CHECK-NOT: ttir.update_cache
  %0 = "ttir.reshape"(%p) {shape = array<i64: 1, 1, 1, 1>} : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
  %1 = "ttir.broadcast"(%0) {broadcast_dimensions = array<i64: 1, 3, 1, 4>} : (tensor<1x1x1x1xi32>) -> tensor<1x3x1x4xi32>
  %2 = "ttir.scatter"(%cache, %1, %x) {dim = 2 : i64, scatter_reduce_type = "Invalid"} : (tensor<2x3x8x4xf32>, tensor<1x3x1x4xi32>, tensor<1x3x1x4xf32>) -> tensor<2x3x8x4xf32>
  return %2 : tensor<2x3x8x4xf32>
}

// -----

// Each user has a position of its own.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<2x3x8x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %p: tensor<2xi32> {ttcore.argument_type = "input"}, %x: tensor<2x3x1x4xf32> {ttcore.argument_type = "input"}) -> (tensor<2x3x8x4xf32>) {
  // CHECK-NOT: ttir.update_cache
  %0 = "ttir.reshape"(%p) {shape = array<i64: 2, 1, 1, 1>} : (tensor<2xi32>) -> tensor<2x1x1x1xi32>
  %1 = "ttir.broadcast"(%0) {broadcast_dimensions = array<i64: 1, 3, 1, 4>} : (tensor<2x1x1x1xi32>) -> tensor<2x3x1x4xi32>
  %2 = "ttir.scatter"(%cache, %1, %x) {dim = 2 : i64, scatter_reduce_type = "Invalid"} : (tensor<2x3x8x4xf32>, tensor<2x3x1x4xi32>, tensor<2x3x1x4xf32>) -> tensor<2x3x8x4xf32>
  return %2 : tensor<2x3x8x4xf32>
}

// -----

// A fill and an update of pages, one after the other, both write to the state.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<9x2x32x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %x: tensor<1x2x64x4xf32> {ttcore.argument_type = "input"}, %y: tensor<1x3x2x4xf32> {ttcore.argument_type = "input"}, %p: tensor<3xi32> {ttcore.argument_type = "input"}, %t: tensor<3x2xi32> {ttcore.argument_type = "input"}) -> (tensor<9x2x32x4xf32>) {
  // CHECK: %[[FILLED:.*]] = "ttir.paged_fill_cache"(%arg0, %arg1, %arg4)
  // CHECK-NEXT: %[[NEW:.*]] = "ttir.paged_update_cache"(%[[FILLED]], %arg2, %arg3, %arg4)
  // CHECK-NEXT: return %[[NEW]]
  %0 = "ttir.paged_fill_cache"(%cache, %x, %t) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<9x2x32x4xf32>, tensor<1x2x64x4xf32>, tensor<3x2xi32>) -> tensor<9x2x32x4xf32>
  %1 = "ttir.paged_update_cache"(%0, %y, %p, %t) : (tensor<9x2x32x4xf32>, tensor<1x3x2x4xf32>, tensor<3xi32>, tensor<3x2xi32>) -> tensor<9x2x32x4xf32>
  return %1 : tensor<9x2x32x4xf32>
}

// -----

// Something else reads the value between both ops, so no op writes to the state.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<9x2x32x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %x: tensor<1x2x64x4xf32> {ttcore.argument_type = "input"}, %y: tensor<1x3x2x4xf32> {ttcore.argument_type = "input"}, %p: tensor<3xi32> {ttcore.argument_type = "input"}, %t: tensor<3x2xi32> {ttcore.argument_type = "input"}) -> (tensor<9x2x32x4xf32>, tensor<9x2x32x4xf32>) {
  // CHECK-NOT: paged
  %0 = "ttir.paged_fill_cache"(%cache, %x, %t) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<9x2x32x4xf32>, tensor<1x2x64x4xf32>, tensor<3x2xi32>) -> tensor<9x2x32x4xf32>
  %1 = "ttir.paged_update_cache"(%0, %y, %p, %t) : (tensor<9x2x32x4xf32>, tensor<1x3x2x4xf32>, tensor<3xi32>, tensor<3x2xi32>) -> tensor<9x2x32x4xf32>
  %2 = "ttir.abs"(%0) : (tensor<9x2x32x4xf32>) -> tensor<9x2x32x4xf32>
  return %1, %2 : tensor<9x2x32x4xf32>, tensor<9x2x32x4xf32>
}

// -----

// The library fills whole tiles, and would overwrite the positions from 40 to 63.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<4x2x96x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %x: tensor<1x2x40x4xf32> {ttcore.argument_type = "input"}) -> (tensor<4x2x96x4xf32>) {
  // CHECK: %[[ROWS:.*]] = "ttir.slice_static"(%arg0) {begins = array<i64: 1, 0, 0, 0>, ends = array<i64: 2, 2, 96, 4>
  // CHECK: %[[REST:.*]] = "ttir.slice_static"(%[[ROWS]]) {begins = array<i64: 0, 0, 40, 0>
  // CHECK: %[[NEW:.*]] = "ttir.concat"(%arg1, %[[REST]]) {dim = 2
  // CHECK: "ttir.concat"(%{{.*}}, %[[NEW]], %{{.*}}) {dim = 0
  %0 = "ttir.fill_cache"(%cache, %x) {batch_offset = 1 : i64} : (tensor<4x2x96x4xf32>, tensor<1x2x40x4xf32>) -> tensor<4x2x96x4xf32>
  return %0 : tensor<4x2x96x4xf32>
}

// -----

// One fill writes whole tiles. The other one writes all positions of a cache that is not a whole number of tiles.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<4x2x40x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %x: tensor<4x2x32x4xf32> {ttcore.argument_type = "input"}, %y: tensor<2x2x40x4xf32> {ttcore.argument_type = "input"}) -> (tensor<4x2x40x4xf32>) {
  // CHECK: %[[FIRST:.*]] = "ttir.fill_cache"(%arg0, %arg1) {batch_offset = 0 : i64}
  // CHECK-NEXT: "ttir.fill_cache"(%[[FIRST]], %arg2) {batch_offset = 1 : i64}
  %0 = "ttir.fill_cache"(%cache, %x) {batch_offset = 0 : i64} : (tensor<4x2x40x4xf32>, tensor<4x2x32x4xf32>) -> tensor<4x2x40x4xf32>
  %1 = "ttir.fill_cache"(%0, %y) {batch_offset = 1 : i64} : (tensor<4x2x40x4xf32>, tensor<2x2x40x4xf32>) -> tensor<4x2x40x4xf32>
  return %1 : tensor<4x2x40x4xf32>
}

// -----

// The library takes only pages that are whole tiles.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<9x2x16x4xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %y: tensor<1x3x2x4xf32> {ttcore.argument_type = "input"}, %p: tensor<3xi32> {ttcore.argument_type = "input"}, %t: tensor<3x2xi32> {ttcore.argument_type = "input"}) -> (tensor<9x2x16x4xf32>) {
  // CHECK-NOT: paged
  %1 = "ttir.paged_update_cache"(%cache, %y, %p, %t) : (tensor<9x2x16x4xf32>, tensor<1x3x2x4xf32>, tensor<3xi32>, tensor<3x2xi32>) -> tensor<9x2x16x4xf32>
  return %1 : tensor<9x2x16x4xf32>
}

// -----

// A cache that is no state gets a new value.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<9x2x32x4xf32> {ttcore.argument_type = "input"}, %x: tensor<1x2x32x4xf32> {ttcore.argument_type = "input"}, %t: tensor<3x2xi32> {ttcore.argument_type = "input"}) -> (tensor<9x2x32x4xf32>) {
  // CHECK-NOT: paged
  // CHECK: "ttir.scatter"
  %0 = "ttir.paged_fill_cache"(%cache, %x, %t) {operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<9x2x32x4xf32>, tensor<1x2x32x4xf32>, tensor<3x2xi32>) -> tensor<9x2x32x4xf32>
  return %0 : tensor<9x2x32x4xf32>
}

// -----

// The first positions of all users are written: cache[:, :, :64] = x.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<3x2x96x8xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %x: tensor<3x2x64x8xf32> {ttcore.argument_type = "input"}) -> (tensor<3x2x96x8xf32>) {
  // CHECK-NEXT: %[[NEW:.*]] = "ttir.fill_cache"(%arg0, %arg1) {batch_offset = 0 : i64}
  // CHECK-NEXT: return %[[NEW]]
  %0 = "ttir.slice_static"(%cache) {begins = array<i64: 0, 0, 64, 0>, ends = array<i64: 3, 2, 96, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<3x2x96x8xf32>) -> tensor<3x2x32x8xf32>
  %1 = "ttir.concat"(%x, %0) {dim = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<3x2x64x8xf32>, tensor<3x2x32x8xf32>) -> tensor<3x2x96x8xf32>
  return %1 : tensor<3x2x96x8xf32>
}

// -----

// The other positions of the state move.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<3x2x96x8xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %x: tensor<3x2x64x8xf32> {ttcore.argument_type = "input"}) -> (tensor<3x2x96x8xf32>) {
  // CHECK-NOT: ttir.fill_cache
  %0 = "ttir.slice_static"(%cache) {begins = array<i64: 0, 0, 32, 0>, ends = array<i64: 3, 2, 64, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<3x2x96x8xf32>) -> tensor<3x2x32x8xf32>
  %1 = "ttir.concat"(%x, %0) {dim = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<3x2x64x8xf32>, tensor<3x2x32x8xf32>) -> tensor<3x2x96x8xf32>
  return %1 : tensor<3x2x96x8xf32>
}

// -----

// The last positions are written.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<3x2x96x8xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %x: tensor<3x2x64x8xf32> {ttcore.argument_type = "input"}) -> (tensor<3x2x96x8xf32>) {
  // CHECK-NOT: ttir.fill_cache
  %0 = "ttir.slice_static"(%cache) {begins = array<i64: 0, 0, 0, 0>, ends = array<i64: 3, 2, 32, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<3x2x96x8xf32>) -> tensor<3x2x32x8xf32>
  %1 = "ttir.concat"(%0, %x) {dim = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<3x2x32x8xf32>, tensor<3x2x64x8xf32>) -> tensor<3x2x96x8xf32>
  return %1 : tensor<3x2x96x8xf32>
}

// -----

// The written positions are not whole tiles.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<3x2x96x8xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %x: tensor<3x2x40x8xf32> {ttcore.argument_type = "input"}) -> (tensor<3x2x96x8xf32>) {
  // CHECK-NOT: ttir.fill_cache
  %0 = "ttir.slice_static"(%cache) {begins = array<i64: 0, 0, 40, 0>, ends = array<i64: 3, 2, 96, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<3x2x96x8xf32>) -> tensor<3x2x56x8xf32>
  %1 = "ttir.concat"(%x, %0) {dim = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<3x2x40x8xf32>, tensor<3x2x56x8xf32>) -> tensor<3x2x96x8xf32>
  return %1 : tensor<3x2x96x8xf32>
}

// -----

// Another op reads the old values.
// CHECK-LABEL: @main(
func.func @main(%cache: tensor<3x2x96x8xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %x: tensor<3x2x64x8xf32> {ttcore.argument_type = "input"}) -> (tensor<3x2x96x8xf32>, tensor<3x2x96x8xf32>) {
  // CHECK-NOT: ttir.fill_cache
  %0 = "ttir.slice_static"(%cache) {begins = array<i64: 0, 0, 64, 0>, ends = array<i64: 3, 2, 96, 8>, step = array<i64: 1, 1, 1, 1>} : (tensor<3x2x96x8xf32>) -> tensor<3x2x32x8xf32>
  %1 = "ttir.concat"(%x, %0) {dim = 2 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<3x2x64x8xf32>, tensor<3x2x32x8xf32>) -> tensor<3x2x96x8xf32>
  %2 = "ttir.abs"(%cache) : (tensor<3x2x96x8xf32>) -> tensor<3x2x96x8xf32>
  return %1, %2 : tensor<3x2x96x8xf32>, tensor<3x2x96x8xf32>
}
