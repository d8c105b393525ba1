// The attributes that convolutions share with the ops that prepare their weights.
#pragma once

#include "kernels/kernels.h"
#include "kernels/onednn.h"

namespace tt::runtime::kernels {

struct Convolution {
  onednn::ConvShape shape;
  std::vector<int64_t> kernel, edges;  // edges: padding [left, right, top, bottom], empty if it is symmetric
  int64_t batch = 1, height = 1, width = 1, channels = 1, out_channels = 1;
  std::vector<int64_t> out_size() const;           // height and width of the result
  std::vector<int64_t> weight() const;             // O, C / groups, KH, KW
  std::vector<int64_t> transposed_weight() const;  // C, O / groups, KH, KW
};

// Reads and checks the attributes. Throws BinaryFormat errors.
Convolution read_convolution(OpBuilder& op);

// The type in which a convolution of values of `type` is computed. The result is rounded once. On processors
// with AMX, the oneDNN of torch 2.13.0 computes wrong sums of bfloat16, in eager PyTorch too, if a kernel of
// few channels is 8 or more wide. Processors without AVX-512 have no fused ops of bfloat16.
at::ScalarType computed_type(at::ScalarType type, int64_t kernel_width);

// Forms of prepared operands (OpBuilder::opaque).
std::string weight_form(const Convolution& c);
std::string transposed_weight_form(const Convolution& c);
std::string bias_form(int64_t channels);

// A (1, 1, N*H*W, C) tensor as (N, C, H, W), without a copy.
at::Tensor as_image(const at::Tensor& flat, int64_t batch, int64_t height, int64_t width);

inline at::Tensor as_flat(const at::Tensor& image, const std::vector<int64_t>& shape) {
  return image.permute({0, 2, 3, 1}).reshape(shape);
}

}  // namespace tt::runtime::kernels
