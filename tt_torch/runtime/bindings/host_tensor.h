// Reads Python tensors as host buffers through DLPack's exchange table, without copies or new Python objects.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "tt/runtime/tensor.h"

namespace tt::runtime {

// A view of a tensor's memory, which is valid while the tensor exists. Throws an InputDtype error for an
// object that is no tensor, and for a tensor without memory or with an unsupported device or type. The
// message of the error begins with `who`.
HostBuffer host_buffer(pybind11::handle tensor, const std::string& who);

// The start of a tensor's memory.
const void* data_pointer(pybind11::handle tensor, const std::string& who);

}  // namespace tt::runtime
