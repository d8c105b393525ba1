// Converts between tensors on the device and CPU tensors over the same memory. Kernels compute on the CPU
// tensors. These functions are for kernels outside of this library too.
#pragma once

#include <ATen/core/Tensor.h>

#include "tt/device/device.h"

namespace tt::device {

// A CPU tensor over the memory of a device tensor, with its sizes and strides. Nothing is copied.
TT_DEVICE_API at::Tensor host_view(const at::Tensor& tensor);

// A device tensor that takes over the memory of a kernel's new result, and counts it as device memory.
TT_DEVICE_API at::Tensor adopt(const at::Tensor& result, c10::DeviceIndex device);

// A device tensor with the memory of `owner` and the sizes and strides of `view`, a CPU tensor over that
// memory.
TT_DEVICE_API at::Tensor share(const at::Tensor& view, const at::Tensor& owner);

// Gives a device tensor the sizes and the memory of its view after a kernel has written to the view, because
// kernels resize `out=` arguments.
TT_DEVICE_API void follow(const at::Tensor& tensor, const at::Tensor& view);

// The operands and results of one op: device tensors enter as CPU views, and results leave as device tensors.
class TT_DEVICE_API Crossing {
 public:
  Crossing();
  ~Crossing();
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

  at::Tensor enter(const at::Tensor& tensor);
  at::Tensor leave(const at::Tensor& result);
  void finish() const;  // calls follow() for all tensors that were entered
  c10::DeviceIndex device() const;

 private:
  struct Pair {
    at::Tensor tensor, view;
  };
  c10::SmallVector<Pair, 4> pairs_;
  int64_t begin_;  // the start time for the profiler
};

}  // namespace tt::device
