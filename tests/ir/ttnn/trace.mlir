// RUN: env TT_TORCH_ENABLE_TRACE=1 %opt --step ttir-to-ttnn --step layouts --step const-eval --step deallocate --step trace %s | %check
// RUN: %opt --step ttir-to-ttnn --step layouts --step const-eval --step deallocate --step trace %s | filecheck %s --check-prefix=OFF
// OFF-NOT: trace

// The program has the weights on the device, its input on the host, and the recording.
// CHECK-LABEL: @main(
// CHECK-SAME: %arg0: tensor<2x3xf32, #ttnn.layout<"Float32", "RowMajor", "SystemMemory"
func.func @main(%x: tensor<2x3xf32>, %w: tensor<2x3xf32> {ttcore.argument_type = "parameter"}) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  // CHECK-NEXT: [[W:%[0-9]+]] = call @main_const_eval_0(%arg1)
  // CHECK-NEXT: [[R:%[0-9]+]]:2 = call @capture_or_execute_trace_0([[W]], %arg0)
  // CHECK-NEXT: return [[R]]#0, [[R]]#1
  %0 = "ttir.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.add"(%0, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// The recorded ops read the memory of the input, and write to the memory of results. They free only temporaries.
// CHECK-LABEL: @trace_0_main(
// CHECK-NEXT: [[X:%[0-9]+]] = "ttnn.to_layout"(%arg1)
// CHECK-NEXT: [[E:%[0-9]+]] = "ttnn.exp"([[X]])
// CHECK-NEXT: "ttnn.deallocate"([[X]])
// CHECK-NEXT: [[S:%[0-9]+]] = "ttnn.add"([[E]], %arg0)
// CHECK-NEXT: "ttnn.copy"([[E]], %arg2)
// CHECK-NEXT: "ttnn.deallocate"([[E]])
// CHECK-NEXT: "ttnn.copy"([[S]], %arg3)
// CHECK-NEXT: "ttnn.deallocate"([[S]])
// CHECK-NEXT: return

// CHECK-LABEL: @allocate_slots_trace_0_main(
// CHECK-NEXT: [[X:%[0-9]+]] = "ttnn.empty"() {{.*}}"RowMajor", "DRAM"
// CHECK-NEXT: [[A:%[0-9]+]] = "ttnn.empty"() {{.*}}"Tile", "DRAM"
// CHECK-NEXT: [[B:%[0-9]+]] = "ttnn.empty"() {{.*}}"Tile", "DRAM"
// CHECK-NEXT: return %arg0, [[X]], [[A]], [[B]]

// CHECK-LABEL: @run_and_capture_trace_0_main(
// CHECK-NEXT: "ttnn.write_tensor"(%arg0, %arg2)
// CHECK-NEXT: call @trace_0_main(%arg1, %arg2, %arg3, %arg4)
// CHECK-NEXT: [[N:%[0-9]+]] = "ttnn.begin_trace_capture"()
// CHECK-NEXT: call @trace_0_main(%arg1, %arg2, %arg3, %arg4)
// CHECK-NEXT: "ttnn.end_trace_capture"([[N]])
// CHECK-NEXT: "ttnn.execute_trace"([[N]])
// CHECK-NEXT: return [[N]]

// CHECK-LABEL: @execute_trace_0_main(
// CHECK-NEXT: "ttnn.execute_trace"(%arg0)
// CHECK-NEXT: return

// CHECK-LABEL: @capture_or_execute_trace_0(
// CHECK-SAME: allocate_slots_callee = @allocate_slots_trace_0_main, capture_callee = @run_and_capture_trace_0_main, execute_callee = @execute_trace_0_main

// -----

// A result that is returned twice has one place. An input that is returned comes back from the host, and one that no op
// reads stays on the device.
// CHECK-LABEL: @main(
// CHECK-SAME: %arg0: tensor<2xf32, #ttnn.layout<"Float32", "RowMajor", "SystemMemory"
// CHECK-SAME: %arg1: tensor<2xf32, #ttnn.layout<"Float32", "RowMajor", "DRAM"
func.func @main(%x: tensor<2xf32>, %unused: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  // CHECK-NEXT: [[R:%[0-9]+]] = call @capture_or_execute_trace_0(%arg0)
  // CHECK-NEXT: return [[R]], %arg0, %arg1, [[R]]
  %0 = "ttir.exp"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0, %x, %unused, %0 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// -----

// A program without ops has nothing to record.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: return %arg0
  // CHECK-NOT: trace
  return %x : tensor<2xf32>
}

// -----

// Random numbers differ in each call, but a recording would repeat the numbers of the first call.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK: "ttnn.rand"()
  // CHECK-NOT: trace
  %0 = "ttir.rand"() {size = array<i64: 2, 3>, low = 0.0 : f32, high = 1.0 : f32, seed = 3 : i64} : () -> tensor<2x3xf32>
  %1 = "ttir.add"(%x, %0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// A state stays on the device. Its new value is a result with memory of its own, so the ops may run twice in a call.
// CHECK-LABEL: @main(
func.func @main(%s: tensor<2x3xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}) -> tensor<2x3xf32> {
  // CHECK-NEXT: [[R:%[0-9]+]] = call @capture_or_execute_trace_0(%arg0)
  // CHECK-NEXT: return [[R]]
  // CHECK-LABEL: @trace_0_main(
  // CHECK-NEXT: [[E:%[0-9]+]] = "ttnn.exp"(%arg0)
  // CHECK-NEXT: "ttnn.copy"([[E]], %arg1)
  %0 = "ttir.exp"(%s) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

// A cache that is written to stays on the device, and is an argument of the recorded ops.
// CHECK-LABEL: @main(
// CHECK-SAME: %arg0: tensor<1x2x32x32xf32, #ttnn.layout<"Float32", "Tile", "DRAM"
// CHECK-SAME: %arg1: tensor<1x2x1x32xf32, #ttnn.layout<"Float32", "RowMajor", "SystemMemory"
func.func @main(%cache: tensor<1x2x32x32xf32> {ttcore.argument_type = "state", tf.aliasing_output = 0 : i32}, %x: tensor<1x2x1x32xf32>, %i: tensor<1xi32>) -> (tensor<1x2x32x32xf32>, tensor<1x2x32x32xf32>) {
  // CHECK-NEXT: [[R:%[0-9]+]] = call @capture_or_execute_trace_0(%arg0, %arg1, %arg2)
  // CHECK-NEXT: return %arg0, [[R]]
  // CHECK-LABEL: @trace_0_main(
  // CHECK: "ttnn.update_cache"(%arg0,
  // CHECK: "ttnn.exp"(%arg0)
  %0 = "ttir.update_cache"(%cache, %x, %i) {batch_offset = 0 : i64} : (tensor<1x2x32x32xf32>, tensor<1x2x1x32xf32>, tensor<1xi32>) -> tensor<1x2x32x32xf32>
  %1 = "ttir.exp"(%0) : (tensor<1x2x32x32xf32>) -> tensor<1x2x32x32xf32>
  return %0, %1 : tensor<1x2x32x32xf32>, tensor<1x2x32x32xf32>
}
