// Program structure: devices, lifetimes, calls, markers.
#include "kernels/kernels.h"

namespace tt::runtime::kernels {

void get_device(OpBuilder& op) {
  const auto mesh = op.attributes().record("mesh");
  if (!mesh || mesh->integer("x") * mesh->integer("y") == 1) return;
  throw Error(ErrorKind::UnsupportedBinary, "the program asks for a mesh of several chips");
}

void deallocate(OpBuilder& op) {
  const auto ref = op.attributes().record("in");
  op.require(ref.has_value(), "operand in is missing");
  op.planner().forget(static_cast<uint32_t>(ref->integer("global_id")));
}

void load_cached(OpBuilder& op) { op.planner().load_cached(op); }

void func_call(OpBuilder& op) {
  op.planner().call(op, static_cast<size_t>(op.attributes().integer("program_id")));
}

void identity_marker(OpBuilder& op) {
  const Slot source = op.in("operand");
  op.same(op.out("result"), source);
}

void no_effect(OpBuilder& op) { op.maybe("operand"); }

}  // namespace tt::runtime::kernels
