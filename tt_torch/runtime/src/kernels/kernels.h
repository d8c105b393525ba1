// Declarations that the files of kernels share. A builder is a function that reads one op's attributes and
// adds the steps that run it. Each file ends with the table of its ops, so a new kernel is a function and a
// row in one file.
#pragma once

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "builder.h"
#include "values.h"

namespace tt::runtime::kernels {

struct Row {
  std::string_view op;  // the op's name in the wire format
  Kernel build;
};
using Table = std::span<const Row>;

// One per file.
extern const Table attention_ops, cache_ops, choosing_ops, collective_ops, convolution_ops,
    convolution_prepare_ops, creation_ops, elementwise_ops, host_code_ops, indexing_ops, layout_ops,
    matmul_ops, movement_ops, normalization_ops, pooling_ops, reduction_ops, structure_ops, training_ops,
    unary_ops;

constexpr int64_t kSizeLimit = 1 << 20;  // above all sizes and strides of windows

// Builds an op of the user, with the kernel that this process has registered (custom_op.cpp). Returns false
// for a CpuOp that calls a function of a library.
bool custom_op(OpBuilder& op);

// A generator that gives the same random numbers for a seed each time. For zero it is none, which means
// PyTorch's default generator.
std::optional<at::Generator> generator_of(int64_t seed);

// The number of dimensions of a tensor.
inline int64_t rank(OpBuilder& op, Slot slot) { return static_cast<int64_t>(op.spec(slot).shape.size()); }

// The value of an optional operand, for ATen calls that take optional tensors.
inline at::Tensor value_or_none(Frame& frame, std::optional<Slot> slot) {
  return slot ? frame[*slot] : at::Tensor();
}

}  // namespace tt::runtime::kernels
