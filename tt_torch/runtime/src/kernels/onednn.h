// PyTorch's fused oneDNN ops, which are called through the dispatcher.
#pragma once

#include <ATen/Functions.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "kernels/activations.h"

namespace tt::runtime::kernels::onednn {

using Scalars = c10::List<std::optional<at::Scalar>>;
using OptionalTensor = std::optional<at::Tensor>;

template <typename Signature>
auto find(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).typed<Signature>();
}

// Whether the fused ops take tensors of a type on this processor. Fused ops of bfloat16 need AVX-512 or newer
// instructions, and raise an error without them.
inline bool supports(at::ScalarType type) {
  static const bool narrow = find<bool()>("mkldnn::_is_mkldnn_bf16_supported", "").call();
  return type != at::kBFloat16 || narrow;
}

inline std::optional<std::string_view> algorithm_of(const Activation& activation) {
  return activation.algorithm.empty() ? std::nullopt : std::optional<std::string_view>(activation.algorithm);
}

inline at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                         const Activation& activation) {
  static const auto op =
      find<at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&, std::string_view, Scalars,
                      std::optional<std::string_view>)>("mkldnn::_linear_pointwise", "");
  return op.call(x, weight, bias, activation.fused, Scalars(), algorithm_of(activation));
}

inline at::Tensor linear_add(const at::Tensor& x, const at::Tensor& other, const at::Tensor& weight,
                             const OptionalTensor& bias) {
  static const auto op =
      find<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                      std::string_view)>("mkldnn::_linear_pointwise", "binary");
  return op.call(x, other, weight, bias, "add");
}

// `weight` is (N, K).
inline at::Tensor pack_linear(const at::Tensor& weight) {
  static const auto op =
      find<at::Tensor(const at::Tensor&, std::optional<int64_t>)>("mkldnn::_reorder_linear_weight", "");
  return op.call(weight.contiguous(), std::nullopt);
}

struct ConvShape {
  std::vector<int64_t> stride, padding, dilation, input;  // input as N, C, H, W
  int64_t groups = 1;
};

inline at::Tensor pack_convolution(const at::Tensor& weight, const ConvShape& c) {
  static const auto op =
      find<at::Tensor(const at::Tensor&, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t,
                      at::OptionalIntArrayRef)>("mkldnn::_reorder_convolution_weight", "");
  // If two convolutions prepare the same weight, the second one gets the weight that the first one packed.
  const at::Tensor plain = weight.is_mkldnn() ? weight.to_dense() : weight;
  if (c.input[1] == 1) return plain.contiguous();  // a packed weight of one channel has the error of as_image
  return op.call(plain.contiguous(), c.padding, c.stride, c.dilation, c.groups, c.input);
}

inline at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const OptionalTensor& bias,
                              const ConvShape& c, const Activation& activation) {
  static const auto op =
      find<at::Tensor(const at::Tensor&, const at::Tensor&, const OptionalTensor&, at::IntArrayRef,
                      at::IntArrayRef, at::IntArrayRef, int64_t, std::string_view, Scalars,
                      std::optional<std::string_view>)>("mkldnn::_convolution_pointwise", "");
  return op.call(x, weight, bias, c.padding, c.stride, c.dilation, c.groups, activation.fused, Scalars(),
                 algorithm_of(activation));
}

inline at::Tensor convolution_add(const at::Tensor& x, const at::Tensor& other, const at::Tensor& weight,
                                  const OptionalTensor& bias, const ConvShape& c, bool relu) {
  static const auto op =
      find<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&, const OptionalTensor&,
                      at::IntArrayRef, at::IntArrayRef, at::IntArrayRef, int64_t, std::string_view,
                      std::optional<at::Scalar>, std::optional<std::string_view>, Scalars,
                      std::optional<std::string_view>)>("mkldnn::_convolution_pointwise", "binary");
  return op.call(x, other, weight, bias, c.padding, c.stride, c.dilation, c.groups, "add", std::nullopt,
                 relu ? std::optional<std::string_view>("relu") : std::nullopt, Scalars(), std::nullopt);
}

}  // namespace tt::runtime::kernels::onednn
