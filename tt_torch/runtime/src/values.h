// How device values are held on the host: a tensor of the logical shape in a storage type that represents
// the device type exactly. Block-float values are bf16 numbers on the block grid; unsigned 16 and 32 bit
// integers live in the next larger signed type, because ATen computes in those.
#pragma once

#include <ATen/core/Tensor.h>

#include "tt/runtime/tensor.h"

namespace tt::runtime {

at::ScalarType storage_type(DataType dtype);
at::ScalarType host_type(DataType dtype);
bool is_float(DataType dtype);
bool is_block_float(DataType dtype);

// A tensor over the caller's memory. Throws an Input error when the description is not sound.
at::Tensor view_of(const HostBuffer& buffer);

// True when a host buffer of type `from` may be given where the program wants `to`.
bool converts(DataType from, DataType to);
std::string accepted_types(DataType to);

// The value a device of type `dtype` would hold; shares memory with `host` when nothing changes.
at::Tensor to_value(const at::Tensor& host, DataType dtype);
bool is_value(const at::Tensor& host, DataType dtype);  // nothing changes

// Brings a tensor that was computed in storage type back onto the grid of `dtype`, in place.
void settle(at::Tensor& value, DataType dtype);
bool needs_settling(DataType dtype);

void copy_out(const at::Tensor& value, const HostBuffer& destination);

// Copies of every dimension fit in memory and in int64 arithmetic; throws BinaryFormat otherwise.
int64_t checked_volume(const std::vector<int64_t>& shape);

}  // namespace tt::runtime
