// Kernels of ops that are not part of the runtime. A program names such an op, and the process that runs the
// program has registered its kernel; a file never says which code runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tt/runtime/tensor.h"

namespace tt::runtime {

struct CustomCall {
  std::string op;                   // for example "mylib::scaled.default"
  std::string arguments;            // JSON from the file; docs/binary_format.md describes it
  std::string location;             // the user's line and the node of the graph
  std::vector<HostBuffer> inputs;   // row-major copies of the operands
  std::vector<HostBuffer> outputs;  // row-major memory, which the kernel fills
};

// The kernel of an op. If it throws an exception, the run ends with a Kernel error.
using CustomKernel = std::function<void(const CustomCall&)>;

// Registers the kernel of an op. A later registration replaces it, for the programs that are loaded after it.
TT_RUNTIME_API void register_kernel(const std::string& op, CustomKernel kernel);

}  // namespace tt::runtime
