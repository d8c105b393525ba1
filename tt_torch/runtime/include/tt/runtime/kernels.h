// Kernels as functions on CPU tensors, for callers that have tensors instead of programs. This header needs
// ATen's headers.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "tt/runtime/export.h"

namespace tt::runtime::kernels {

// activation(x @ weight.T + bias), as one kernel if oneDNN has it. x has the shape (..., K), weight (N, K),
// and the result (..., N). `activation` is a name as in MatmulOp ("relu", "gelu", ..., "" for none). Another
// name throws an UnsupportedBinary error.
TT_RUNTIME_API at::Tensor linear(const at::Tensor& x, const at::Tensor& weight,
                                 const std::optional<at::Tensor>& bias, const std::string& activation);

}  // namespace tt::runtime::kernels
