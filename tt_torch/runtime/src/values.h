// How the host holds device values: as a tensor of the logical shape, in a storage type that represents the
// device type exactly. Block floats are bf16 numbers that have been rounded to blocks. Unsigned integers of
// 16 and 32 bits are held in the next larger signed type, because ATen has few kernels for unsigned types.
#pragma once

#include <ATen/core/Tensor.h>

#include "tt/runtime/tensor.h"

namespace tt::runtime {

at::ScalarType storage_type(DataType dtype);
at::ScalarType host_type(DataType dtype);
bool is_float(DataType dtype);
bool is_block_float(DataType dtype);

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape);

// A tensor over the caller's memory. Throws an InputShape or InputDtype error if the description is invalid.
at::Tensor view_of(const HostBuffer& buffer, std::shared_ptr<void> owner = nullptr);

// Whether a host buffer of type `from` is accepted for a tensor of type `to`.
bool converts(DataType from, DataType to);
std::string accepted_types(DataType to);

// The value that a device holds for `host` in the type `dtype`. It shares memory with `host` if is_value().
at::Tensor to_value(const at::Tensor& host, DataType dtype);
bool is_value(const at::Tensor& host, DataType dtype);  // whether to_value() changes nothing

// Rounds or wraps a tensor in storage type to values that `dtype` can represent, in place.
void settle(at::Tensor& value, DataType dtype);
bool needs_settling(DataType dtype);

void copy_out(const at::Tensor& value, const HostBuffer& destination);

// The number of elements. Throws a BinaryFormat error if it is more than 2^36, if a dimension is negative, or
// if there are more than 12 dimensions. So products of it with element sizes cannot overflow.
int64_t checked_volume(const std::vector<int64_t>& shape);

}  // namespace tt::runtime
