// Products of one row of bfloat16 and a packed weight, such as those of a language model that decodes a
// token.
#pragma once

#include <ATen/core/Tensor.h>

namespace tt::runtime::kernels::one_row {

// Whether `product` can compute `x` times `weight`. `x` must be one row of bfloat16, and `weight` a tensor
// that oneDNN packed. The first call with a weight compares the layout with its plain form, and the weight
// keeps the answer.
bool takes(const at::Tensor& x, const at::Tensor& weight);

// The product of `x` (..., K) and `weight` (N, K), in float32, with the shape (..., N).
at::Tensor product(const at::Tensor& x, const at::Tensor& weight);

}  // namespace tt::runtime::kernels::one_row
