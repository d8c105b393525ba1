// Element-wise ops with one operand.
#include "kernels/activations.h"
#include "kernels/kernels.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;
using UnaryWrite = Tensor& (*)(Tensor& out, const Tensor& a);

#define ROW(name) [](Tensor& o, const Tensor& a) -> Tensor& { return at::name##_out(o, a); }

Tensor& is_finite(Tensor& out, const Tensor& a) { return out.copy_(at::isfinite(a)); }
Tensor& relu6(Tensor& out, const Tensor& a) { return at::clamp_out(out, a, 0, 6); }
Tensor& relu(Tensor& out, const Tensor& a) { return at::clamp_min_out(out, a, 0); }
Tensor& gelu_exact(Tensor& out, const Tensor& a) { return at::gelu_out(out, a); }

struct UnaryRow {
  UnaryWrite write;  // null for LeakyRelu, which has a parameter
  bool boolean = false;
};

// The rows by the names of EltwiseUnaryOpType.
constexpr wire::Named<UnaryRow> rows[] = {
    {"Abs", {ROW(abs)}},
    {"Acos", {ROW(acos)}},
    {"Asin", {ROW(asin)}},
    {"Asinh", {ROW(asinh)}},
    {"Atan", {ROW(atan)}},
    {"BitwiseNot", {ROW(bitwise_not)}},
    {"Ceil", {ROW(ceil)}},
    {"Cos", {ROW(cos)}},
    {"Erf", {ROW(erf)}},
    {"Erfc", {ROW(erfc)}},
    {"Exp", {ROW(exp)}},
    {"Expm1", {ROW(expm1)}},
    {"Floor", {ROW(floor)}},
    {"Gelu", {gelu_exact}},
    {"Hardsigmoid", {ROW(hardsigmoid)}},
    {"IsFinite", {is_finite, true}},
    {"LeakyRelu", {nullptr}},
    {"Log", {ROW(log)}},
    {"LogicalNot", {ROW(logical_not), true}},
    {"Mish", {ROW(mish)}},
    {"Neg", {ROW(neg)}},
    {"Reciprocal", {ROW(reciprocal)}},
    {"Relu", {relu}},
    {"Relu6", {relu6}},
    {"Round", {ROW(round)}},
    {"Rsqrt", {ROW(rsqrt)}},
    {"Sigmoid", {ROW(sigmoid)}},
    {"Sign", {ROW(sign)}},
    {"Silu", {ROW(silu)}},
    {"Sin", {ROW(sin)}},
    {"Sqrt", {ROW(sqrt)}},
    {"Tan", {ROW(tan)}},
    {"Tanh", {ROW(tanh)}},
};
#undef ROW

double number(const wire::Record& value) {
  const bool integral = std::string_view(value.type_name()).ends_with("IntegralType");
  return integral ? static_cast<double>(value.integer("value")) : value.real("value");
}

void cube_root(OpBuilder& op, Slot source, Slot out) {
  op.compute(out, [=](Frame& f) {
    const Tensor x = f[source].to(at::kFloat);  // a third is not accurate in bfloat16
    return at::copysign(at::pow(at::abs(x), 1.0 / 3.0), x);
  });
}

void log1p(OpBuilder& op, Slot source, Slot out) {
  op.compute(out, [=](Frame& f) { return at::log1p(f[source]); });
}

void leaky_relu(OpBuilder& op, Slot source, Slot out) {
  const auto params = op.attributes().member("params");
  const double slope = params ? params->real("parameter") : 0.01;
  op.compute(out, [=](Frame& f) { return at::leaky_relu(f[source], slope); });
}

void clamp_scalar(OpBuilder& op, Slot source, Slot out) {
  const auto params = op.attributes().member("params");
  const auto low = params ? params->member("min") : std::nullopt,
             high = params ? params->member("max") : std::nullopt;
  std::optional<at::Scalar> minimum, maximum;
  if (low) minimum = number(*low);
  if (high) maximum = number(*high);
  op.require(low || high, "both bounds of the clamp are missing");
  op.compute(out, [=](Frame& f) { return at::clamp(f[source], minimum, maximum); });
}

void clamp_tensor(OpBuilder& op, Slot source, Slot out) {
  const auto params = op.attributes().member("params");
  const auto low = params ? params->record("min") : std::nullopt,
             high = params ? params->record("max") : std::nullopt;
  op.require(low && high, "a bound of the clamp is missing");
  const Slot minimum = op.operand(*low), maximum = op.operand(*high);
  op.require_broadcast({source, minimum, maximum}, out);
  op.compute(out, [=](Frame& f) { return at::minimum(at::maximum(f[source], f[minimum]), f[maximum]); });
}

// The builders by the names of EltwiseUnaryCompositeOpType.
constexpr wire::Named<void (*)(OpBuilder&, Slot source, Slot out)> composite_unary[] = {
    {"Cbrt", cube_root}, {"ClampScalar", clamp_scalar}, {"ClampTensor", clamp_tensor}, {"Log1p", log1p}};

}  // namespace

static void unary(OpBuilder& op) {
  const UnaryRow& row = op.attributes().choose("type", rows);
  const Slot source = op.in("in"), out = op.out();
  op.require(op.spec(source).shape == op.spec(out).shape, "operand and result have different shapes");
  if (!row.write) return leaky_relu(op, source, out);
  const UnaryWrite write = row.write;
  if (row.boolean || op.spec(source).dtype == op.spec(out).dtype)
    return op.write(out, [=](Frame& f) { write(f[out], f[source]); });
  op.compute(out, [=](Frame& f) {
    Tensor result = at::empty_like(f[source]);
    return write(result, f[source]);
  });
}

static void unary_composite(OpBuilder& op) {
  const auto build = op.attributes().choose("type", composite_unary);
  const Slot source = op.in("in"), out = op.out();
  build(op, source, out);
}

static constexpr Row unary_rows[] = {
    {"EltwiseUnaryCompositeOp", unary_composite},
    {"EltwiseUnaryOp", unary},
};
constinit const Table unary_ops = unary_rows;

}  // namespace tt::runtime::kernels
