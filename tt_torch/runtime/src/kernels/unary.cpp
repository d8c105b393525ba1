// Element-wise ops of one operand.
#include "kernels/activations.h"
#include "kernels/kernels.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;
using Write = Tensor& (*)(Tensor& out, const Tensor& a);

#define ROW(name) [](Tensor& o, const Tensor& a) -> Tensor& { return at::name##_out(o, a); }

Tensor& is_finite(Tensor& out, const Tensor& a) { return out.copy_(at::isfinite(a)); }
Tensor& relu6(Tensor& out, const Tensor& a) { return at::clamp_out(out, a, 0, 6); }
Tensor& relu(Tensor& out, const Tensor& a) { return at::clamp_min_out(out, a, 0); }
Tensor& gelu_exact(Tensor& out, const Tensor& a) { return at::gelu_out(out, a); }

// Indexed by EltwiseUnaryOpType; LeakyRelu (23) has a parameter and is built apart.
constexpr Write rows[] = {
    ROW(abs),  ROW(ceil),  ROW(cos),  ROW(floor),       gelu_exact,   is_finite, ROW(logical_not),
    ROW(neg),  relu,       ROW(sqrt), ROW(rsqrt),       ROW(sigmoid), ROW(sin),  ROW(reciprocal),
    ROW(sign), ROW(tan),   ROW(tanh), ROW(atan),        ROW(exp),     ROW(erf),  ROW(erfc),
    ROW(log),  ROW(expm1), nullptr,   ROW(bitwise_not), relu6,        ROW(silu), ROW(hardsigmoid),
    ROW(mish), ROW(acos),  ROW(asin), ROW(asinh)};
#undef ROW

constexpr int64_t kLeakyRelu = 23, kIsFinite = 5, kLogicalNot = 6;

double number(const wire::Record& value) {
  const bool integral = std::string_view(value.type_name()).ends_with("IntegralType");
  return integral ? static_cast<double>(value.integer("value")) : value.real("value");
}

Tensor cube_root(const Tensor& a) { return at::sign(a) * at::pow(at::abs(a), 1.0 / 3.0); }

void clamp_scalar(OpBuilder& op, Slot source, Slot out) {
  const auto params = op.attributes().member("params");
  const auto low = params ? params->member("min") : std::nullopt,
             high = params ? params->member("max") : std::nullopt;
  std::optional<at::Scalar> minimum, maximum;
  if (low) minimum = number(*low);
  if (high) maximum = number(*high);
  op.require(low || high, "clamp without bounds");
  op.compute(out, [=](Frame& f) { return at::clamp(f[source], minimum, maximum); });
}

void clamp_tensor(OpBuilder& op, Slot source, Slot out) {
  const auto params = op.attributes().member("params");
  const auto low = params ? params->record("min") : std::nullopt,
             high = params ? params->record("max") : std::nullopt;
  op.require(low && high, "clamp without bounds");
  const Slot minimum = op.operand(*low), maximum = op.operand(*high);
  op.compute(out, [=](Frame& f) { return at::minimum(at::maximum(f[source], f[minimum]), f[maximum]); });
}

}  // namespace

void unary(OpBuilder& op) {
  const int64_t type = op.attributes().integer("type");
  op.require(type >= 0 && type < static_cast<int64_t>(std::size(rows)), "unknown function");
  const Slot source = op.in("in"), out = op.out();
  op.require(op.spec(source).shape == op.spec(out).shape, "operand and result differ in shape");
  if (type == kLeakyRelu) {
    const auto params = op.attributes().member("params");
    const double slope = params ? params->real("parameter") : 0.01;
    return op.compute(out, [=](Frame& f) { return at::leaky_relu(f[source], slope); });
  }
  const Write write = rows[type];
  const bool boolean = type == kIsFinite || type == kLogicalNot;
  if (boolean || op.spec(source).dtype == op.spec(out).dtype)
    return op.write(out, [=](Frame& f) { write(f[out], f[source]); });
  op.compute(out, [=](Frame& f) {
    Tensor result = at::empty_like(f[source]);
    return write(result, f[source]);
  });
}

void unary_composite(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  switch (op.attributes().integer("type")) {
    case 0:
      return op.compute(out, [=](Frame& f) { return cube_root(f[source]); });
    case 1:
      return clamp_scalar(op, source, out);
    case 2:
      return clamp_tensor(op, source, out);
    case 3:
      return op.compute(out, [=](Frame& f) { return at::log1p(f[source]); });
    default:
      op.invalid("unknown function");
  }
}

}  // namespace tt::runtime::kernels
