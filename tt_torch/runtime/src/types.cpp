#include "tt/runtime/types.h"

#include "tt/runtime/error.h"

namespace tt::runtime {

const char* name(DataType dtype) {
  constexpr const char* names[] = {"Float32",    "Float16",     "BFloat16",   "BFP_Float8",  "BFP_BFloat8",
                                   "BFP_Float4", "BFP_BFloat4", "BFP_Float2", "BFP_BFloat2", "UInt32",
                                   "UInt16",     "UInt8",       "Int32",      "Float64",     "Int64",
                                   "UInt64",     "Int16",       "Int8",       "Bool"};
  return names[static_cast<size_t>(dtype)];
}

const char* name(PageLayout layout) { return layout == PageLayout::Tile ? "tile" : "row_major"; }

const char* name(BufferType buffer) {
  constexpr const char* names[] = {"dram", "l1", "host"};
  return names[static_cast<size_t>(buffer)];
}

const char* name(MemoryLayout layout) {
  constexpr const char* names[] = {"interleaved", "height_sharded", "width_sharded", "block_sharded",
                                   "nd_sharded"};
  return names[static_cast<size_t>(layout)];
}

std::string describe(const std::vector<int64_t>& shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (int64_t dim : shape) text += (text.empty() ? "" : "x") + std::to_string(dim);
  return text;
}

std::string describe(const TensorSpec& spec) {
  return describe(spec.shape) + " " + name(spec.dtype) + " " + name(spec.layout) + " " + name(spec.buffer);
}

const char* Error::class_name() const {
  constexpr const char* names[] = {"BinaryFormatError",   "SchemaError",        "UnsupportedBinaryError",
                                   "InputCountError",     "InputShapeError",    "InputDtypeError",
                                   "DeviceError",         "DeviceMemoryError",  "KernelError",
                                   "ExecutableBusyError", "PackageError",       "ArgumentError",
                                   "InexactError",        "KernelMissingError", "ReleasedWeightError"};
  return names[static_cast<size_t>(kind_)];
}

}  // namespace tt::runtime
