#include "values.h"

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>

#include <cstring>

#include "block_round.h"
#include "tt/runtime/error.h"

namespace tt::runtime {

at::ScalarType storage_type(DataType dtype) {
  switch (dtype) {
    case DataType::Float32:
      return at::kFloat;
    case DataType::BFloat16:
    case DataType::BfpBFloat8:
    case DataType::BfpBFloat4:
      return at::kBFloat16;
    case DataType::UInt32:
      return at::kLong;
    case DataType::UInt16:
    case DataType::Int32:
      return at::kInt;
    case DataType::UInt8:
      return at::kByte;
    default:
      break;
  }
  throw Error(ErrorKind::UnsupportedBinary,
              std::string("a device cannot hold values of type ") + name(dtype));
}

at::ScalarType host_type(DataType dtype) {
  switch (dtype) {
    case DataType::Float16:
      return at::kHalf;
    case DataType::Float64:
      return at::kDouble;
    case DataType::Int64:
      return at::kLong;
    case DataType::UInt64:
      return at::kUInt64;
    case DataType::UInt32:
      return at::kUInt32;
    case DataType::UInt16:
      return at::kUInt16;
    case DataType::Int16:
      return at::kShort;
    case DataType::Int8:
      return at::kChar;
    case DataType::Bool:
      return at::kBool;
    case DataType::Float32:
    case DataType::BFloat16:
    case DataType::UInt8:
    case DataType::Int32:
      return storage_type(dtype);
    default:
      break;
  }
  throw Error(ErrorKind::InputDtype, std::string("host memory cannot hold elements of type ") + name(dtype));
}

bool is_block_float(DataType dtype) { return dtype == DataType::BfpBFloat8 || dtype == DataType::BfpBFloat4; }

bool is_float(DataType dtype) { return dtype <= DataType::BfpBFloat2 || dtype == DataType::Float64; }

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<int64_t>(shape[i], 1);
  return strides;
}

at::Tensor view_of(const HostBuffer& buffer, std::shared_ptr<void> owner) {
  if (buffer.shape.size() != buffer.strides.size())
    throw Error(ErrorKind::InputShape, "a host buffer needs as many strides as dimensions");
  for (size_t i = 0; i < buffer.shape.size(); ++i)
    if (buffer.shape[i] < 0 || buffer.strides[i] < 0)
      throw Error(ErrorKind::InputShape, "the sizes and strides of a host buffer must not be negative");
  const at::TensorOptions options(host_type(buffer.dtype));
  if (!owner) return at::from_blob(buffer.data, buffer.shape, buffer.strides, options);
  const auto drop = [owner = std::move(owner)](void*) {};
  return at::from_blob(buffer.data, buffer.shape, buffer.strides, drop, options);
}

bool converts(DataType from, DataType to) { return from == DataType::Bool || is_float(from) == is_float(to); }

std::string accepted_types(DataType to) {
  return is_float(to) ? "Float32, BFloat16, Float16, Float64 or Bool" : "any integer type or Bool";
}

bool is_value(const at::Tensor& host, DataType dtype) {
  return host.scalar_type() == storage_type(dtype) && host.is_contiguous() && !needs_settling(dtype);
}

at::Tensor to_value(const at::Tensor& host, DataType dtype) {
  if (is_value(host, dtype)) return host;
  at::Tensor value = host.to(storage_type(dtype)).contiguous();
  if (!needs_settling(dtype)) return value;
  if (value.is_alias_of(host)) value = value.clone();
  settle(value, dtype);
  return value;
}

bool needs_settling(DataType dtype) {
  return is_block_float(dtype) || dtype == DataType::UInt32 || dtype == DataType::UInt16;
}

void settle(at::Tensor& value, DataType dtype) {
  if (dtype == DataType::UInt32) value.bitwise_and_(0xffffffffLL);
  if (dtype == DataType::UInt16) value.bitwise_and_(0xffff);
  if (!is_block_float(dtype) || value.numel() == 0) return;
  if (!value.is_contiguous()) value = value.contiguous();
  const int64_t columns = value.dim() ? value.size(-1) : 1;
  auto* data = value.data_ptr<at::BFloat16>();
  at::parallel_for(0, value.numel() / columns, 64, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      round_row(data + row * columns, columns, mantissa_bits(dtype));
  });
}

static bool is_row_major(const HostBuffer& buffer) {
  int64_t expected = 1;
  for (size_t i = buffer.shape.size(); i-- > 0; expected *= buffer.shape[i])
    if (buffer.shape[i] != 1 && buffer.strides[i] != expected) return false;
  return true;
}

void copy_out(const at::Tensor& value, const HostBuffer& destination) {
  const bool plain = !value.is_mkldnn() && value.scalar_type() == host_type(destination.dtype) &&
                     value.is_contiguous() && value.sizes() == at::IntArrayRef(destination.shape) &&
                     is_row_major(destination);
  if (plain) {
    if (value.numel() && value.const_data_ptr() != destination.data)
      std::memcpy(destination.data, value.const_data_ptr(), value.nbytes());
    return;
  }
  at::Tensor target = view_of(destination);
  target.copy_(value.is_mkldnn() ? value.to_dense() : value);
}

int64_t checked_volume(const std::vector<int64_t>& shape) {
  int64_t volume = 1;
  constexpr int64_t limit = int64_t{1} << 36;  // far above any device memory
  for (int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(volume, dim, &volume) || volume > limit)
      throw Error(ErrorKind::BinaryFormat, "a tensor has shape " + describe(shape) +
                                               ", which is negative or larger than 2^36 elements");
  }
  if (shape.size() > 12) throw Error(ErrorKind::BinaryFormat, "a tensor has more than 12 dimensions");
  return volume;
}

}  // namespace tt::runtime
