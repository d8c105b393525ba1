// Tensors as the caller sees them: borrowed host memory, and handles that stay on a device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tt/runtime/device.h"
#include "tt/runtime/types.h"

namespace tt::runtime {

// A view of the caller's memory. Strides are in elements; any non-negative strides are accepted.
struct HostBuffer {
  void* data = nullptr;
  std::vector<int64_t> shape, strides;
  DataType dtype = DataType::Float32;
  bool on_device = false;  // the memory is a device's own, and charged there already
};

// A resident tensor with a process-wide version number. Host specs borrow the caller's memory without a
// copy and keep `owner` alive, and so do device specs what is on the device in their type; otherwise device
// specs hold a converted copy and its device allocation. Errors begin with `who`.
class TT_RUNTIME_API Tensor {
 public:
  Tensor() = default;
  static Tensor create(const Device& device, const TensorSpec& spec, const HostBuffer& source,
                       std::shared_ptr<void> owner = nullptr, const std::string& who = "tensor");

  const TensorSpec& spec() const;
  uint64_t version() const;
  explicit operator bool() const { return impl_ != nullptr; }

  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }
  explicit Tensor(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace tt::runtime
