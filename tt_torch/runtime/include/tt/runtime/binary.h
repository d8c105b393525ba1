// A loaded TTNN binary. It is verified and immutable, and copies share its contents.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tt/runtime/types.h"

namespace tt::runtime {

struct ProgramInfo {
  std::string name;
  bool is_private = false;  // const-eval and trace functions
  std::vector<TensorSpec> inputs, outputs;
  std::vector<int64_t> mesh_shape = {1, 1};  // rows and columns of chips
};

class TT_RUNTIME_API Binary {
 public:
  // Verifies the bytes before anything is read. Throws a BinaryFormat or a Schema error.
  static Binary load(std::span<const std::byte> bytes);
  static Binary load_file(const std::string& path);

  const std::vector<ProgramInfo>& programs() const;
  const std::string& schema_hash() const;
  const std::string& version() const;  // the version of the compiler that wrote it: "major.minor.patch"

  struct Impl;
  const std::shared_ptr<const Impl>& impl() const { return impl_; }

 private:
  explicit Binary(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tt::runtime
