// RUN: %opt --step apply-dtype --dtype bf16 %s | %check
// RUN: %opt --step apply-dtype --dtype f32 %s | filecheck %s --check-prefix=F32

// The signature does not change. Inputs and computed constants are cast; ops on constants alone keep their type.
// CHECK-LABEL: @main(
// CHECK-SAME: %arg0: tensor<4xf32>, %arg1: tensor<4xf32>
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32> {ttcore.argument_type = "parameter"}) -> tensor<4xf32> {
  // CHECK: [[W:%[0-9]+]] = "ttir.multiply"(%arg1, %arg1) {{.*}} -> tensor<4xf32>
  %0 = "ttir.multiply"(%w, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK-DAG: [[X16:%[0-9]+]] = "ttir.typecast"(%arg0) {dtype = bf16}
  // CHECK-DAG: [[W16:%[0-9]+]] = "ttir.typecast"([[W]]) {dtype = bf16}
  // CHECK: [[Y:%[0-9]+]] = "ttir.add"([[X16]], [[W16]]) {{.*}} -> tensor<4xbf16>
  %1 = "ttir.add"(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: [[Z:%[0-9]+]] = "ttir.typecast"([[Y]]) {dtype = f32}
  // CHECK: return [[Z]]
  // F32-NOT: ttir.typecast
  return %1 : tensor<4xf32>
}

// -----

// Comparisons keep their bf16 zeros and ones, also if they are used with floats.
// CHECK-LABEL: @main(
// F32-LABEL: @main(
func.func @main(%x: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>) {
  // CHECK-NOT: ttir.typecast
  // F32: [[X:%[0-9]+]] = "ttir.typecast"(%arg0) {dtype = f32}
  // F32: [[P:%[0-9]+]] = "ttir.gt"([[X]], {{.*}} -> tensor<4xbf16>
  %0 = "ttir.neg"(%x) : (tensor<4xbf16>) -> tensor<4xbf16>
  %1 = "ttir.gt"(%x, %0) : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  // F32: [[C:%[0-9]+]] = "ttir.typecast"([[P]]) {dtype = f32}
  // F32: "ttir.multiply"([[C]], [[X]]) {{.*}} -> tensor<4xf32>
  %2 = "ttir.multiply"(%1, %x) : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  // F32: "ttir.where"([[P]], {{.*}} : (tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "ttir.where"(%1, %x, %0) : (tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  return %2, %3 : tensor<4xbf16>, tensor<4xbf16>
}

// -----

// Integers do not change. Casts between float types that are now the same are removed.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4xbf16>, %n: tensor<4xi32>) -> (tensor<4xbf16>, tensor<4xi32>) {
  // CHECK-NEXT: [[E:%[0-9]+]] = "ttir.exp"(%arg0)
  %0 = "ttir.typecast"(%x) {dtype = f32} : (tensor<4xbf16>) -> tensor<4xf32>
  %1 = "ttir.exp"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "ttir.typecast"(%1) {dtype = bf16} : (tensor<4xf32>) -> tensor<4xbf16>
  // CHECK-NEXT: [[N:%[0-9]+]] = "ttir.add"(%arg1, %arg1) {{.*}} -> tensor<4xi32>
  %3 = "ttir.add"(%n, %n) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK-NEXT: return [[E]], [[N]]
  return %2, %3 : tensor<4xbf16>, tensor<4xi32>
}

// -----

// Bitcasts stay between types of 32 bits.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4xf32>, %n: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xf32>) {
  // CHECK: [[Y:%[0-9]+]] = "ttir.exp"({{.*}} -> tensor<4xbf16>
  %0 = "ttir.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: [[W:%[0-9]+]] = "ttir.typecast"([[Y]]) {dtype = f32}
  // CHECK-NEXT: [[B:%[0-9]+]] = "ttir.bitcast_convert"([[W]]) {dtype = i32}
  %1 = "ttir.bitcast_convert"(%0) {dtype = i32} : (tensor<4xf32>) -> tensor<4xi32>
  // CHECK: [[F:%[0-9]+]] = "ttir.bitcast_convert"(%arg1) {dtype = f32} : (tensor<4xi32>) -> tensor<4xf32>
  // CHECK-NEXT: [[C:%[0-9]+]] = "ttir.typecast"([[F]]) {dtype = bf16}
  %2 = "ttir.bitcast_convert"(%n) {dtype = f32} : (tensor<4xi32>) -> tensor<4xf32>
  // CHECK: "ttir.exp"([[C]]) {{.*}} -> tensor<4xbf16>
  %3 = "ttir.exp"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %3 : tensor<4xi32>, tensor<4xf32>
}

// -----

// An op may say that it computes in float32. The value between two such ops has no cast.
// CHECK-LABEL: @main(
func.func @main(%x: tensor<4xf32>, %step: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: [[Y:%[0-9]+]] = "ttir.exp"({{.*}} -> tensor<4xbf16>
  %0 = "ttir.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: [[W:%[0-9]+]] = "ttir.typecast"([[Y]]) {dtype = f32}
  // CHECK-NEXT: [[A:%[0-9]+]] = "ttir.add"([[W]], %arg1) {{.*}} -> tensor<4xf32>
  %1 = "ttir.add"(%0, %step) {tt.in_float32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: [[S:%[0-9]+]] = "ttir.subtract"([[A]], %arg1) {{.*}} -> tensor<4xf32>
  %2 = "ttir.subtract"(%1, %step) {tt.in_float32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: [[C:%[0-9]+]] = "ttir.typecast"([[S]]) {dtype = bf16}
  // CHECK: "ttir.exp"([[C]]) {{.*}} -> tensor<4xbf16>
  %3 = "ttir.exp"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// -----

// A module may name the nodes whose ops compute in float32. Booleans keep their type, and results stay as they are.
// CHECK-LABEL: @main(
module attributes {tt.in_float32 = ["log", "lt", "where"]} {
  func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    // CHECK: [[L:%[0-9]+]] = "ttir.log"(%arg0) {tt.in_float32} : (tensor<4xf32>) -> tensor<4xf32>
    %0 = "ttir.log"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("log: aten.log.default")
    // CHECK: [[P:%[0-9]+]] = "ttir.lt"([[L]], %arg0) {{.*}} -> tensor<4xbf16>
    %1 = "ttir.lt"(%0, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xbf16> loc("lt: aten.lt.Tensor")
    // CHECK: [[W:%[0-9]+]] = "ttir.where"([[P]], {{.*}} : (tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>)
    %2 = "ttir.where"(%1, %0, %x) : (tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("where: aten.where.self")
    // CHECK-NEXT: [[C:%[0-9]+]] = "ttir.typecast"([[W]]) {dtype = bf16}
    // CHECK: [[E:%[0-9]+]] = "ttir.exp"([[C]]) {{.*}} -> tensor<4xbf16>
    %3 = "ttir.exp"(%2) : (tensor<4xf32>) -> tensor<4xf32> loc("exp: aten.exp.default")
    // CHECK: [[R:%[0-9]+]] = "ttir.typecast"([[E]]) {dtype = f32}
    // CHECK: return [[W]], [[R]]
    return %2, %3 : tensor<4xf32>, tensor<4xf32>
  }
}
