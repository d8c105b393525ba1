#include "kernels/activations.h"

#include <map>

#include "kernels/kernels.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;

const std::map<std::string, Activation>& activations() {
  static const std::map<std::string, Activation> rows = {
      {"", {}},
      {"relu", {[](const Tensor& t) { return at::relu(t); }, "relu", ""}},
      {"gelu", {[](const Tensor& t) { return at::gelu(t); }, "gelu", "none"}},
      {"gelu_tanh", {[](const Tensor& t) { return at::gelu(t, "tanh"); }, "gelu", "tanh"}},
      {"silu", {[](const Tensor& t) { return at::silu(t); }, "swish", ""}},
      {"sigmoid", {[](const Tensor& t) { return at::sigmoid(t); }, "sigmoid", ""}},
      {"tanh", {[](const Tensor& t) { return at::tanh(t); }, "tanh", ""}},
      {"relu6", {[](const Tensor& t) { return at::clamp(t, 0, 6); }, "", ""}},
      {"exp", {[](const Tensor& t) { return at::exp(t); }, "", ""}},
      {"sqrt", {[](const Tensor& t) { return at::sqrt(t); }, "", ""}},
      {"abs", {[](const Tensor& t) { return at::abs(t); }, "", ""}},
      {"square", {[](const Tensor& t) { return at::square(t); }, "", ""}},
      {"hardsigmoid", {[](const Tensor& t) { return at::hardsigmoid(t); }, "", ""}},
      {"neg", {[](const Tensor& t) { return at::neg(t); }, "", ""}},
      {"log", {[](const Tensor& t) { return at::log(t); }, "", ""}},
      {"log1p", {[](const Tensor& t) { return at::log1p(t); }, "", ""}},
      {"expm1", {[](const Tensor& t) { return at::expm1(t); }, "", ""}},
      {"rsqrt", {[](const Tensor& t) { return at::rsqrt(t); }, "", ""}},
      {"sin", {[](const Tensor& t) { return at::sin(t); }, "", ""}},
      {"cos", {[](const Tensor& t) { return at::cos(t); }, "", ""}},
      {"sign", {[](const Tensor& t) { return at::sign(t); }, "", ""}},
      {"floor", {[](const Tensor& t) { return at::floor(t); }, "", ""}},
      {"ceil", {[](const Tensor& t) { return at::ceil(t); }, "", ""}},
      {"logical_not", {[](const Tensor& t) { return at::logical_not(t); }, "", ""}},
      {"softplus", {[](const Tensor& t) { return at::softplus(t); }, "", ""}},
      {"tan", {[](const Tensor& t) { return at::tan(t); }, "", ""}},
      {"atan", {[](const Tensor& t) { return at::atan(t); }, "", ""}},
      {"erf", {[](const Tensor& t) { return at::erf(t); }, "", ""}},
      {"erfc", {[](const Tensor& t) { return at::erfc(t); }, "", ""}},
      {"recip", {[](const Tensor& t) { return at::reciprocal(t); }, "", ""}},
      {"log2", {[](const Tensor& t) { return at::log2(t); }, "", ""}},
      {"log10", {[](const Tensor& t) { return at::log10(t); }, "", ""}},
      {"exp2", {[](const Tensor& t) { return at::exp2(t); }, "", ""}},
  };
  return rows;
}

// Maps the names of UnaryOpType to the names above.
constexpr wire::Named<const char*> names_by_type[] = {
    {"Exp", "exp"},         {"Gelu", "gelu"},
    {"Relu", "relu"},       {"Sqrt", "sqrt"},
    {"Sigmoid", "sigmoid"}, {"Tanh", "tanh"},
    {"Abs", "abs"},         {"Square", "square"},
    {"Relu6", "relu6"},     {"Hardsigmoid", "hardsigmoid"},
    {"Silu", "silu"},       {"Softplus", "softplus"},
    {"Identity", ""},       {"Neg", "neg"},
    {"Log", "log"},         {"Log1p", "log1p"},
    {"Expm1", "expm1"},     {"Rsqrt", "rsqrt"},
    {"Sin", "sin"},         {"Cos", "cos"},
    {"Sign", "sign"},       {"Floor", "floor"},
    {"Ceil", "ceil"},       {"LogicalNotUnary", "logical_not"},
    {"Tan", "tan"},         {"Atan", "atan"},
    {"Erf", "erf"},         {"Erfc", "erfc"},
    {"Recip", "recip"},     {"Log2", "log2"},
    {"Log10", "log10"},     {"Exp2", "exp2"}};

}  // namespace

Activation activation_named(const std::string& name) {
  const auto row = activations().find(name);
  if (row == activations().end())
    throw Error(ErrorKind::UnsupportedBinary, "the fused activation " + name + " has no kernel");
  return row->second;
}

Activation activation_of(const wire::Record& unary) {
  const auto params = unary.reals("params");
  if (unary.name_in("op_type") == "LeakyRelu") {
    const double slope = params.empty() ? 0.01 : params[0];
    return {[slope](const Tensor& t) { return at::leaky_relu(t, slope); }, "", ""};
  }
  if (unary.name_in("op_type") == "Round") {
    const auto decimals = static_cast<int64_t>(params.empty() ? 0 : params[0]);
    return {[decimals](const Tensor& t) { return at::round(t, decimals); }, "", ""};
  }
  return activation_named(unary.choose("op_type", names_by_type));
}

}  // namespace tt::runtime::kernels
