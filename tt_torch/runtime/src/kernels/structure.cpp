// Ops that only structure a program: devices, deallocation, calls, markers.
#include "kernels/kernels.h"
#include "recording.h"

namespace tt::runtime::kernels {

static void get_device(OpBuilder& op) {
  const auto mesh = op.attributes().record("mesh");
  op.require(!mesh || op.mesh() == Mesh{mesh->integer("y"), mesh->integer("x")},
             "the op's mesh is another one than that of the program");
}

static void deallocate(OpBuilder& op) {
  const auto ref = op.attributes().record("in");
  op.require(ref.has_value(), "operand in is missing");
  op.planner().forget(static_cast<uint32_t>(ref->integer("global_id")));
}

static void load_cached(OpBuilder& op) { op.planner().load_cached(op); }

static void func_call(OpBuilder& op) {
  op.planner().call(op, static_cast<size_t>(op.attributes().integer("program_id")));
}

static void capture_or_execute_trace(OpBuilder& op) { op.planner().replay(op); }
static void part_of_a_recording(OpBuilder& op) { refuse_outside_of_recording(op.operation()); }

static void identity_marker(OpBuilder& op) {
  const Slot source = op.passed("operand");
  op.same(op.out("result"), source);
}

static void no_effect(OpBuilder& op) { op.maybe("operand"); }

// The chips run in lock step, so none of them waits for a semaphore.
static void semaphore(OpBuilder&) {}

static constexpr Row structure_rows[] = {
    {"AnnotateOp", identity_marker},
    {"BeginTraceCaptureOp", part_of_a_recording},
    {"CaptureOrExecuteTraceOp", capture_or_execute_trace},
    {"CreateGlobalSemaphoreOp", semaphore},
    {"DeallocateOp", deallocate},
    {"EndTraceCaptureOp", part_of_a_recording},
    {"ExecuteTraceOp", part_of_a_recording},
    {"FuncCallOp", func_call},
    {"GetDeviceOp", get_device},
    {"LoadCachedOp", load_cached},
    {"MemorySnapshotOp", no_effect},
    {"PrintOp", no_effect},
    {"RegionEndOp", identity_marker},
    {"RegionStartOp", identity_marker},
    {"ResetGlobalSemaphoreOp", semaphore},
};
constinit const Table structure_ops = structure_rows;

}  // namespace tt::runtime::kernels
