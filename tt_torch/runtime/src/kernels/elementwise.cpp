// Element-wise ops of two and three operands.
#include <ATen/ExpandUtils.h>

#include "kernels/kernels.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;
using Write = Tensor& (*)(Tensor& out, const Tensor& a, const Tensor& b);
using Compute = Tensor (*)(const Tensor& a, const Tensor& b);

// `write` is used when the result type can hold what the operands promote to, else `compute`.
struct BinaryRow {
  Write write;
  Compute compute;
};

Tensor logical_shift_right(const Tensor& a, const Tensor& b) {
  const Tensor bits = a.scalar_type() == at::kInt ? a.to(at::kLong).bitwise_and(0xffffffffLL) : a;
  return at::where(b < 32, bits.bitwise_right_shift(b), 0).to(a.scalar_type());
}

Tensor divide(const Tensor& a, const Tensor& b) {
  const bool integers =
      at::isIntegralType(a.scalar_type(), true) && at::isIntegralType(b.scalar_type(), true);
  return integers ? at::div(a, b, "trunc") : at::div(a, b);
}

#define ROW(name)                                                                                  \
  {[](Tensor& o, const Tensor& a, const Tensor& b) -> Tensor& { return at::name##_out(o, a, b); }, \
   [](const Tensor& a, const Tensor& b) { return at::name(a, b); }}

// Indexed by EltwiseBinaryOpType.
constexpr BinaryRow binary_rows[] = {ROW(add),        ROW(mul),          {nullptr, logical_shift_right},
                                     ROW(sub),        ROW(eq),           ROW(ne),
                                     ROW(ge),         ROW(gt),           ROW(le),
                                     ROW(lt),         {nullptr, divide}, ROW(logical_and),
                                     ROW(logical_or), ROW(logical_xor)};

// Indexed by EltwiseBinaryCompositeOpType.
constexpr BinaryRow composite_rows[] = {ROW(maximum),    ROW(minimum),     ROW(remainder),
                                        ROW(pow),        ROW(atan2),       ROW(bitwise_and),
                                        ROW(bitwise_or), ROW(bitwise_xor), ROW(bitwise_left_shift)};
#undef ROW

constexpr int64_t kSmall = 1 << 14;  // elements below which a plain loop beats a dispatched kernel

template <typename Function>
StepFn small_loop(Slot a, Slot b, Slot out, int64_t count, Write otherwise, Function function) {
  return [=](Frame& f) {
    const Tensor &x = f[a], &y = f[b];
    if (!x.is_contiguous() || !y.is_contiguous()) {
      otherwise(f[out], x, y);
      return;
    }
    const auto *left = static_cast<const float*>(x.const_data_ptr()),
               *right = static_cast<const float*>(y.const_data_ptr());
    auto* result = static_cast<float*>(f[out].mutable_data_ptr());
    for (int64_t i = 0; i < count; ++i) result[i] = function(left[i], right[i]);
  };
}

bool all_small_floats(OpBuilder& op, Slot a, Slot b, Slot out) {
  const auto plain = [&](Slot s) {
    return op.spec(s).dtype == DataType::Float32 && op.spec(s).shape == op.spec(out).shape;
  };
  return plain(a) && plain(b) && plain(out) && checked_volume(op.spec(out).shape) <= kSmall;
}

StepFn choose_write(OpBuilder& op, Write write, Slot a, Slot b, Slot out) {
  if (all_small_floats(op, a, b, out)) {
    const int64_t count = checked_volume(op.spec(out).shape);
    const auto type = op.attributes().integer("type");
    if (write == binary_rows[type].write) {
      if (type == 0) return small_loop(a, b, out, count, write, [](float x, float y) { return x + y; });
      if (type == 1) return small_loop(a, b, out, count, write, [](float x, float y) { return x * y; });
      if (type == 3) return small_loop(a, b, out, count, write, [](float x, float y) { return x - y; });
    }
  }
  return [=](Frame& f) { write(f[out], f[a], f[b]); };
}

void build_binary(OpBuilder& op, std::span<const BinaryRow> rows, bool comparisons) {
  const auto type = static_cast<size_t>(op.attributes().integer("type"));
  op.require(type < rows.size(), "unknown function");
  const Slot a = op.in("lhs"), b = op.in("rhs"), out = op.out();
  const auto shape = at::infer_size(op.spec(a).shape, op.spec(b).shape);
  op.require(shape == op.spec(out).shape, "the result's shape is not that of the broadcast operands");
  const BinaryRow& row = rows[type];
  const auto promoted = c10::promoteTypes(storage_type(op.spec(a).dtype), storage_type(op.spec(b).dtype));
  const bool boolean = comparisons && ((type >= 4 && type <= 9) || type >= 11);
  if (row.write && (boolean || c10::canCast(promoted, storage_type(op.spec(out).dtype))))
    return op.write(out, choose_write(op, row.write, a, b, out));
  op.compute(out, [=](Frame& f) { return row.compute(f[a], f[b]); });
}

}  // namespace

void binary(OpBuilder& op) {
  // Floats divide like any other op; integers truncate, which has no out form of the same signature.
  const auto result = op.attributes().record("out");
  if (op.attributes().integer("type") == 10 && result && is_float(decode_operand(*result).spec.dtype)) {
    const Slot a = op.in("lhs"), b = op.in("rhs"), out = op.out();
    op.require(at::infer_size(op.spec(a).shape, op.spec(b).shape) == op.spec(out).shape,
               "the shapes do not broadcast");
    return op.write(out, [=](Frame& f) { at::div_out(f[out], f[a], f[b]); });
  }
  build_binary(op, binary_rows, true);
}

void binary_composite(OpBuilder& op) { build_binary(op, composite_rows, false); }

void power_scalar(OpBuilder& op) {
  const Slot a = op.in("lhs"), out = op.out();
  const auto exponent = op.attributes().member("rhs");
  op.require(exponent.has_value(), "rhs is missing");
  const bool integral = std::string_view(exponent->type_name()).ends_with("IntegralType");
  const at::Scalar power =
      integral ? at::Scalar(exponent->integer("value")) : at::Scalar(exponent->real("value"));
  op.compute(out, [=](Frame& f) { return at::pow(f[a], power); });
}

void where(OpBuilder& op) {
  const Slot condition = op.in("first"), yes = op.in("second"), no = op.in("third"), out = op.out();
  const auto shape =
      at::infer_size(at::infer_size(op.spec(condition).shape, op.spec(yes).shape), op.spec(no).shape);
  op.require(shape == op.spec(out).shape, "the result's shape is not that of the broadcast operands");
  op.compute(out, [=](Frame& f) { return at::where(f[condition] != 0, f[yes], f[no]); });
}

namespace {

// A scale or zero point: one number, or a tensor along an axis.
struct Parameter {
  double number = 0;
  std::optional<Slot> tensor;
  Tensor value(Frame& f, int64_t axis, int64_t rank) const {
    if (!tensor) return at::scalar_tensor(number);
    std::vector<int64_t> shape(rank, 1);
    shape[axis] = f[*tensor].numel();
    return f[*tensor].reshape(shape).to(at::kFloat);
  }
};

Parameter read_parameter(OpBuilder& op, const wire::Record& owner, const char* field) {
  const auto member = owner.member(field);
  op.require(member.has_value(), "a quantization parameter is missing");
  for (const char* name : {"scale", "zero_point"}) {
    if (!member->has(name)) continue;
    if (auto ref = member->record(name)) return {0, op.operand(*ref)};
    return {member->real(name), std::nullopt};
  }
  return {};
}

}  // namespace

void quantization(OpBuilder& op) {
  const int64_t type = op.attributes().integer("type");
  const Slot source = op.in("in");
  const auto params = op.attributes().member("params");
  op.require(params.has_value() && type >= 0 && type <= 2, "parameters are missing");
  const auto rank = static_cast<int64_t>(op.spec(source).shape.size());
  const int64_t axis = op.dim(op.attributes().maybe_integer("axis").value_or(0), rank);
  const bool again = type == 2;
  const Parameter scale = read_parameter(op, *params, again ? "in_scale" : "scale");
  const Parameter zero = read_parameter(op, *params, again ? "in_zero_point" : "zero_point");
  const Parameter new_scale = again ? read_parameter(op, *params, "out_scale") : scale;
  const Parameter new_zero = again ? read_parameter(op, *params, "out_zero_point") : zero;
  const Slot out = op.out();
  op.compute(out, [=](Frame& f) {
    Tensor real = f[source].to(at::kFloat);
    if (type != 0) real = (real - zero.value(f, axis, rank)) * scale.value(f, axis, rank);
    if (type == 1) return real;
    return at::round(real / new_scale.value(f, axis, rank)) + new_zero.value(f, axis, rank);
  });
}

void gelu_backward(OpBuilder& op) {
  const Slot grad = op.in("grad"), input = op.in("input"), out = op.out();
  const std::string approximate = op.attributes().text("approximate") == "tanh" ? "tanh" : "none";
  op.compute(out, [=](Frame& f) { return at::gelu_backward(f[grad], f[input], approximate); });
}

}  // namespace tt::runtime::kernels
