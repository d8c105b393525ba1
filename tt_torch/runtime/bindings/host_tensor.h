// Python tensors as host buffers, through DLPack's exchange table: no copy, no new objects.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "tt/runtime/tensor.h"

namespace tt::runtime {

// A view of a tensor's memory, valid while the tensor lives. Throws InputDtype errors that begin with `who`
// for objects that are no tensors with memory of a type that we know on the CPU.
HostBuffer host_buffer(pybind11::handle tensor, const std::string& who);

// Only where its memory begins.
const void* data_pointer(pybind11::handle tensor, const std::string& who);

}  // namespace tt::runtime
