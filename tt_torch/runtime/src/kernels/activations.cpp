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
      {"softplus", {[](const Tensor& t) { return at::softplus(t); }, "", ""}},
  };
  return rows;
}

// UnaryOpType values of the functions above.
const std::map<int64_t, std::string>& names_by_type() {
  static const std::map<int64_t, std::string> rows = {
      {0, "exp"},   {2, "gelu"},      {3, "relu"},    {4, "sqrt"},   {5, "sigmoid"},
      {7, "tanh"},  {12, "abs"},      {15, "square"}, {34, "relu6"}, {35, "hardsigmoid"},
      {51, "silu"}, {52, "softplus"}, {53, ""},       {54, "neg"}};
  return rows;
}

}  // namespace

Activation activation_named(const std::string& name) {
  const auto row = activations().find(name);
  if (row == activations().end())
    throw Error(ErrorKind::UnsupportedBinary, "the fused activation " + name + " has no kernel");
  return row->second;
}

Activation activation_of(OpBuilder& op, const wire::Record& unary) {
  const int64_t type = unary.integer("op_type");
  const auto params = unary.reals("params");
  if (type == 25) {  // LeakyRelu
    const double slope = params.empty() ? 0.01 : params[0];
    return {[slope](const Tensor& t) { return at::leaky_relu(t, slope); }, "", ""};
  }
  const auto name = names_by_type().find(type);
  if (name == names_by_type().end())
    throw Error(ErrorKind::UnsupportedBinary,
                op.operation().name + ": fused activation " + std::to_string(type) + " has no kernel");
  return activation_named(name->second);
}

}  // namespace tt::runtime::kernels
