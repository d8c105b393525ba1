// Changes of placement, page layout and type. The host holds values in their logical shape, so a change of
// placement or layout needs no work there. The memory simulation still counts every result as an allocation
// on the device.
#include "kernels/kernels.h"

namespace tt::runtime::kernels {

namespace {

Slot checked_out(OpBuilder& op, Slot source, const char* field = "out") {
  const Slot out = op.out(field);
  op.require(op.spec(out).shape == op.spec(source).shape, "operand and result have different shapes");
  return out;
}

}  // namespace

static void to_layout(OpBuilder& op) {
  const Slot source = op.passed("in");
  op.same(checked_out(op, source), source);
}

static void to_memory_config(OpBuilder& op) {
  const Slot source = op.passed("in0");
  op.same(checked_out(op, source), source);
}

static void typecast(OpBuilder& op) {
  const Slot source = op.passed("in");
  const Slot out = checked_out(op, source);
  if (op.spec(out).dtype == op.spec(source).dtype || op.is_prepared(source)) return op.same(out, source);
  op.write(out, [source, out](Frame& f) { f[out].copy_(f[source]); });
}

// Reinterprets the bits of the host type. They are the same as the bits on the device.
static void bitcast(OpBuilder& op) {
  const Slot source = op.in("in"), out = checked_out(op, source);
  const DataType from = op.spec(source).dtype, to = op.spec(out).dtype;
  op.require(c10::elementSize(host_type(from)) == c10::elementSize(host_type(to)),
             "the elements of operand and result differ in width");
  op.compute(out, [=](Frame& f) {
    return f[source].to(host_type(from)).contiguous().view(host_type(to)).to(storage_type(to));
  });
}

static void assign(OpBuilder& op) {
  const Slot source = op.in("input"), out = checked_out(op, source, "output");
  op.write(out, [source, out](Frame& f) { f[out].copy_(f[source]); });
}

static void copy_into(OpBuilder& op, const char* from, const char* to) {
  const Slot source = op.in(from), target = op.in(to);
  op.require(op.spec(source).shape == op.spec(target).shape, "the operands have different shapes");
  op.update(target, [source, target](Frame& f) { f[target].copy_(f[source]); });
}

static void copy(OpBuilder& op) { copy_into(op, "src", "dst"); }
static void write_tensor(OpBuilder& op) { copy_into(op, "host_tensor", "device_tensor"); }

static constexpr Row layout_rows[] = {
    {"AssignOp", assign},
    {"BitcastConvertOp", bitcast},
    {"CopyOp", copy},
    {"FromDeviceOp", to_layout},
    {"ToDeviceOp", to_layout},
    {"ToLayoutOp", to_layout},
    {"ToMemoryConfigOp", to_memory_config},
    {"TypecastOp", typecast},
    {"WriteTensorOp", write_tensor},
};
constinit const Table layout_ops = layout_rows;

}  // namespace tt::runtime::kernels
