// Stable sorts of long rows.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace tt::runtime::kernels {

// The sorted elements along a dimension and their positions, as at::sort gives them with `stable`. Rows of
// many float32, bfloat16 or int32 are sorted by the digits of their bits, because comparing elements takes
// ten times as long.
std::tuple<at::Tensor, at::Tensor> stable_sort(const at::Tensor& x, int64_t dim, bool descending);

}  // namespace tt::runtime::kernels
