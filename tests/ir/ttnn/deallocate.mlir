// RUN: %opt --step ttir-to-ttnn --step layouts --step const-eval --step deallocate %s | %check

// A value is deallocated right after its last use, but not if it is returned, or if const-eval keeps it.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x3xf32>, %w: tensor<2x3xf32> {ttcore.argument_type = "parameter"}) -> tensor<2x3xf32> {
  // CHECK: call @main_const_eval_0
  // CHECK: [[X:%[0-9]+]] = "ttnn.to_layout"(%arg0)
  // CHECK-NEXT: "ttnn.deallocate"(%arg0)
  // CHECK-NEXT: [[E:%[0-9]+]] = "ttnn.exp"([[X]])
  // CHECK-NEXT: [[S:%[0-9]+]] = "ttnn.add"([[E]], [[X]])
  // CHECK-DAG: "ttnn.deallocate"([[X]])
  // CHECK-DAG: "ttnn.deallocate"([[E]])
  // CHECK: [[R:%[0-9]+]] = "ttnn.multiply"([[S]], {{.*}}
  // CHECK-NEXT: "ttnn.deallocate"([[S]])
  // CHECK-NEXT: return [[R]]
  %0 = "ttir.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "ttir.add"(%0, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %2 = "ttir.multiply"(%1, %w) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %2 : tensor<2x3xf32>
}

// -----

// A result that no op reads is deallocated at once.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<2x6x96xf32>) -> tensor<2x4x6x8xf32> {
  // CHECK: "ttnn.split_query_key_value_and_split_heads"
  // CHECK-DAG: "ttnn.deallocate"({{%[0-9]+}}#1)
  // CHECK-DAG: "ttnn.deallocate"({{%[0-9]+}}#2)
  // CHECK: return
  %q, %k, %v = "ttir.split_query_key_value_and_split_heads"(%x) {num_heads = 4 : i64, transpose_key = false, operandSegmentSizes = array<i32: 1, 0>} : (tensor<2x6x96xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>)
  return %q : tensor<2x4x6x8xf32>
}
