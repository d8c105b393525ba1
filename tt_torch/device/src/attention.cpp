// Attention and dropout. PyTorch calls each of them as one op on accelerators.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <torch/library.h>

#include <algorithm>
#include <array>

#include "tt/device/values.h"

namespace tt::device {

namespace {

using at::Tensor;
using Mask = std::optional<Tensor>;

Mask entered(Crossing& crossing, const Mask& tensor) {
  return tensor && tensor->defined() ? Mask(crossing.enter(*tensor)) : std::nullopt;
}

// Whether the CPU's fused kernel, which computes attention for the device, takes these arguments. The dtypes
// and conditions are from `use_flash_attention_cpp` in ATen/native/transformers/sdp_utils_cpp.cpp, PyTorch
// 2.13.
bool takes(const sdp::sdp_params& p) {
  constexpr at::ScalarType kinds[] = {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf};
  if (std::ranges::find(kinds, p.query.scalar_type()) == std::end(kinds)) return false;
  return sdp::check_runtime_disabled_flash(p, false) && sdp::check_nested_tensor(p, false) &&
         sdp::check_for_dropout(p, false) && sdp::check_tensor_shapes(p, false) &&
         sdp::check_batch_size_and_num_heads_dense<true>(p, false) && sdp::check_attn_mask_shape(p, false) &&
         sdp::check_nonzero_sequence_lengths_dense(p, false) &&
         std::ranges::all_of(std::array{p.query, p.key, p.value}, [&](const Tensor& x) {
           return x.sym_size(-1) == p.query.sym_size(-1) && x.sym_stride(-1) == 1;
         });
}

// Chooses the fused op if it takes the arguments, also while a program is traced. Our compiler turns the
// fused op into one op of the device.
int64_t choose(const Tensor& query, const Tensor& key, const Tensor& value, const Mask& mask, double dropout,
               bool causal, std::optional<double>, bool gqa) {
  const bool fused = takes({query, key, value, mask, dropout, causal, gqa});
  return static_cast<int64_t>(fused ? sdp::SDPBackend::flash_attention : sdp::SDPBackend::math);
}

std::tuple<Tensor, Tensor> attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                     double dropout, bool causal, const Mask& mask,
                                     std::optional<double> scale) {
  Crossing crossing;
  const Tensor q = crossing.enter(query), k = crossing.enter(key), v = crossing.enter(value);
  const auto [output, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(
      q, k, v, dropout, causal, entered(crossing, mask), scale);
  return {crossing.leave(output), crossing.leave(logsumexp)};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& grad, const Tensor& query,
                                                      const Tensor& key, const Tensor& value,
                                                      const Tensor& output, const Tensor& logsumexp,
                                                      double dropout, bool causal, const Mask& mask,
                                                      std::optional<double> scale) {
  Crossing crossing;
  const Tensor g = crossing.enter(grad), q = crossing.enter(query), k = crossing.enter(key),
               v = crossing.enter(value), out = crossing.enter(output), sums = crossing.enter(logsumexp);
  const auto [for_query, for_key, for_value] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      g, q, k, v, out, sums, dropout, causal, entered(crossing, mask), scale);
  return {crossing.leave(for_query), crossing.leave(for_key), crossing.leave(for_value)};
}

// Dropout with random numbers of the device's generator. The CPU's kernel would use the CPU's generator.
std::tuple<Tensor, Tensor> dropout(const Tensor& input, double p, std::optional<bool> train) {
  TORCH_CHECK_VALUE(p >= 0 && p <= 1, "the probability of dropout must be between 0 and 1, got ", p);
  if (!train.value_or(true)) return {input.clone(), at::ones_like(input, at::kBool)};
  const Tensor mask = at::empty_like(input, at::kBool).bernoulli_(1 - p);
  return {input * mask * (p == 1 ? 0.0 : 1 / (1 - p)), mask};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_scaled_dot_product_flash_attention_for_cpu", attention);
  m.impl("_scaled_dot_product_flash_attention_for_cpu_backward", attention_backward);
  m.impl("native_dropout", dropout);
}

}  // namespace

}  // namespace tt::device

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &tt::device::choose)
}
