// The caller's tensors: borrowed host memory, and handles of tensors that stay on a device.
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
  bool on_device = false;  // the memory belongs to a device, which has counted it already
  bool unwanted = false;   // for an output: it has no memory and is not written
};

// A view of memory whose elements are in row-major order without gaps.
TT_RUNTIME_API HostBuffer row_major(void* data, std::vector<int64_t> shape, DataType dtype);

// A tensor that stays between calls, with a version number that is unique in the process. It borrows the
// caller's memory and keeps `owner` alive if `spec` is on the host, or if the memory is already on the device
// in the data type of `spec`. Otherwise it owns a converted copy and an allocation on the device. For a part
// of a later chip of a mesh, `counts` is false: the part has no allocation of its own, because all chips have
// the same allocations as the first. The messages of errors begin with `who`.
class TT_RUNTIME_API Tensor {
 public:
  Tensor() = default;
  static Tensor create(const Device& device, const TensorSpec& spec, const HostBuffer& source,
                       std::shared_ptr<void> owner = nullptr, const std::string& who = "tensor",
                       bool counts = true);

  // State: a tensor that programs update in place. The emulated device and the host share its memory, so a
  // write of one is visible to the other at once. The tensor has an allocation on the device. Throws an
  // InputDtype error for memory whose elements are not in row-major order and in the data type of `spec`.
  static Tensor state(const Device& device, const TensorSpec& spec, const HostBuffer& source,
                      std::shared_ptr<void> owner = nullptr, const std::string& who = "tensor");

  const TensorSpec& spec() const;
  uint64_t version() const;

  // Gives up the tensor's memory, unless a program that has run still needs it. The owner must have given it
  // up, too. A program that needs it later throws a ReleasedWeight error with the name of the weight.
  void release(const std::string& weight);
  explicit operator bool() const { return impl_ != nullptr; }

  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }
  explicit Tensor(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace tt::runtime
