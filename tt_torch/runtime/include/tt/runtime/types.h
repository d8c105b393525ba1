// Descriptions of tensors: data types, layouts, placements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tt/runtime/export.h"

namespace tt::runtime {

// Data types of the wire format; name() below returns their names there. Float64 and the types after it exist
// only in host buffers.
enum class DataType : uint8_t {
  Float32,
  Float16,
  BFloat16,
  BfpFloat8,
  BfpBFloat8,
  BfpFloat4,
  BfpBFloat4,
  BfpFloat2,
  BfpBFloat2,
  UInt32,
  UInt16,
  UInt8,
  Int32,
  Float64,
  Int64,
  UInt64,
  Int16,
  Int8,
  Bool,
};

enum class PageLayout : uint8_t { RowMajor, Tile };
enum class BufferType : uint8_t { Dram, L1, Host };
enum class MemoryLayout : uint8_t { Interleaved, HeightSharded, WidthSharded, BlockSharded, NdSharded };

struct ShardSpec {
  int64_t height = 0, width = 0;  // the size of one shard in elements, tile padding included
  int64_t cores = 0;
};

struct TensorSpec {
  std::vector<int64_t> shape;
  DataType dtype = DataType::Float32;
  PageLayout layout = PageLayout::RowMajor;
  BufferType buffer = BufferType::Host;
  MemoryLayout memory_layout = MemoryLayout::Interleaved;
  std::optional<ShardSpec> shard;
};

TT_RUNTIME_API const char* name(DataType dtype);
TT_RUNTIME_API const char* name(PageLayout layout);
TT_RUNTIME_API const char* name(BufferType buffer);
TT_RUNTIME_API const char* name(MemoryLayout layout);
TT_RUNTIME_API std::string describe(const TensorSpec& spec);  // "1x3x224x224 BFloat16 Tile Dram"
TT_RUNTIME_API std::string describe(const std::vector<int64_t>& shape);

}  // namespace tt::runtime
