// Kernels as functions on CPU tensors, for callers that have tensors rather than programs. Needs ATen's
// headers.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "tt/runtime/export.h"

namespace tt::runtime::kernels {

// activation(x @ weight.T + bias) as one kernel where oneDNN has it. x is (..., K), weight (N, K). Names of
// activations are those on a matmul ("relu", "gelu", ..., "" for none); others throw UnsupportedBinary.
TT_RUNTIME_API at::Tensor linear(const at::Tensor& x, const at::Tensor& weight,
                                 const std::optional<at::Tensor>& bias, const std::string& activation);

}  // namespace tt::runtime::kernels
