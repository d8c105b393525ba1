// Activations that are fused into a convolution or a matrix product.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "builder.h"

namespace tt::runtime::kernels {

struct Activation {
  std::function<at::Tensor(const at::Tensor&)> apply;  // empty: none
  std::string fused = "none";  // its name in oneDNN's pointwise ops, "" if they do not have it
  std::string algorithm;       // of gelu
};

// By the name on a matmul ("relu", "gelu", ...). Throws UnsupportedBinary for others.
Activation activation_named(const std::string& name);

// From a UnaryWithParam record.
Activation activation_of(const wire::Record& unary);

}  // namespace tt::runtime::kernels
