// The file of a package, in the format of safetensors: https://huggingface.co/docs/safetensors.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tt/runtime/tensor.h"

namespace tt::runtime::package {

struct StoredTensor {
  std::vector<int64_t> shape;
  DataType dtype;
  std::span<std::byte> bytes;  // row-major; a write does not reach the file
  HostBuffer buffer() const { return row_major(bytes.data(), shape, dtype); }
};

struct File {
  std::shared_ptr<void> memory;  // the mapped file, which holds the bytes of the tensors
  std::string manifest;          // the text of a JSON object, whose hash has been compared
  std::map<std::string, StoredTensor> tensors;
};

// Throws a Package error if the file cannot be read, is no package, or is damaged. The hashes of the tensors
// are not compared.
File open_file(const std::string& path);

// The type with this name in a manifest, for example Float32 for "float32". Throws a Package error that
// begins with `who`.
DataType dtype_named(const std::string& name, const std::string& who);

std::string sha256(std::span<const std::byte> bytes);  // as 64 hexadecimal digits

}  // namespace tt::runtime::package
