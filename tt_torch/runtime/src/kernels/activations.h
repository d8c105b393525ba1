// Activations that run as a part of a convolution or a matrix product.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "builder.h"

namespace tt::runtime::kernels {

struct Activation {
  std::function<at::Tensor(const at::Tensor&)> apply;  // empty for no activation
  std::string fused = "none";  // its name in oneDNN's pointwise ops, "" if they do not have it
  std::string algorithm;       // the algorithm of gelu in oneDNN's pointwise ops
};

// The activation with a name as in MatmulOp ("relu", "gelu", ..., "" for none). Another name throws an
// UnsupportedBinary error.
Activation activation_named(const std::string& name);

// The activation of a UnaryWithParam record.
Activation activation_of(const wire::Record& unary);

}  // namespace tt::runtime::kernels
