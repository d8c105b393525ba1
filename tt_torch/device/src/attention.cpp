// Attention and dropout. PyTorch calls each of them as one op on accelerators.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <torch/library.h>

#include "tt/device/values.h"

namespace tt::device {

namespace {

using at::Tensor;
using Mask = std::optional<Tensor>;

Mask entered(Crossing& crossing, const Mask& tensor) {
  return tensor && tensor->defined() ? Mask(crossing.enter(*tensor)) : std::nullopt;
}

// Chooses the fused kernel if it can run, otherwise PyTorch's composition.
int64_t choose(const Tensor& query, const Tensor& key, const Tensor& value, const Mask& mask, double dropout,
               bool causal, std::optional<double> scale, bool gqa) {
  // A program that is traced has no values, and compilers know the ops of the composition.
  if (query.key_set().has(c10::DispatchKey::Python)) return static_cast<int64_t>(sdp::SDPBackend::math);
  Crossing crossing;
  const Tensor q = crossing.enter(query), k = crossing.enter(key), v = crossing.enter(value);
  const int64_t choice = at::_fused_sdp_choice(q, k, v, entered(crossing, mask), dropout, causal, scale, gqa);
  const bool fused = choice == static_cast<int64_t>(sdp::SDPBackend::flash_attention);
  return static_cast<int64_t>(fused ? sdp::SDPBackend::overrideable : sdp::SDPBackend::math);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> attention(
    const Tensor& query, const Tensor& key, const Tensor& value, const Mask& mask, double dropout,
    bool causal, bool, std::optional<double> scale) {
  Crossing crossing;
  const Tensor q = crossing.enter(query), k = crossing.enter(key), v = crossing.enter(value);
  const auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      q, k, v, dropout, causal, entered(crossing, mask), scale);
  return {crossing.leave(output),
          crossing.leave(logsumexp),
          {},
          {},
          query.sym_size(2),
          key.sym_size(2),
          {},
          {},
          {}};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> attention_backward(
    const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
    std::array<bool, 4>, const Tensor& output, const Tensor& logsumexp, const Tensor&, const Tensor&,
    c10::SymInt, c10::SymInt, double dropout, bool causal, const Tensor&, const Tensor&,
    std::optional<double> scale) {
  Crossing crossing;
  const Tensor g = crossing.enter(grad), q = crossing.enter(query), k = crossing.enter(key),
               v = crossing.enter(value), out = crossing.enter(output), sums = crossing.enter(logsumexp);
  const auto [for_query, for_key, for_value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      g, q, k, v, out, sums, dropout, causal, entered(crossing, mask), scale);
  return {crossing.leave(for_query), crossing.leave(for_key), crossing.leave(for_value), {}};
}

// Dropout with random numbers of the device's generator. The CPU's kernel would use the CPU's generator.
std::tuple<Tensor, Tensor> dropout(const Tensor& input, double p, std::optional<bool> train) {
  TORCH_CHECK_VALUE(p >= 0 && p <= 1, "the probability of dropout must be between 0 and 1, got ", p);
  if (!train.value_or(true)) return {input.clone(), at::ones_like(input, at::kBool)};
  const Tensor mask = at::empty_like(input, at::kBool).bernoulli_(1 - p);
  return {input * mask * (p == 1 ? 0.0 : 1 / (1 - p)), mask};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_scaled_dot_product_fused_attention_overrideable", attention);
  m.impl("_scaled_dot_product_fused_attention_overrideable_backward", attention_backward);
  m.impl("native_dropout", dropout);
}

}  // namespace

}  // namespace tt::device

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &tt::device::choose)
}
