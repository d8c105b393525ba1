// Between tensors on the device and the CPU tensors over the same memory that kernels compute on: what a
// kernel of one's own is made with.
#pragma once

#include <ATen/core/Tensor.h>

#include "tt/device/device.h"

namespace tt::device {

// A CPU tensor over the memory of a device tensor, with its sizes and strides. Nothing is copied.
TT_DEVICE_API at::Tensor host_view(const at::Tensor& tensor);

// The device tensor of a kernel's new result: takes over its memory, and counts it.
TT_DEVICE_API at::Tensor adopt(const at::Tensor& result, c10::DeviceIndex device);

// A device tensor with the memory of `owner` and the sizes and strides of `view`, a CPU tensor over it.
TT_DEVICE_API at::Tensor share(const at::Tensor& view, const at::Tensor& owner);

// Gives a device tensor the sizes and the memory that its view has after a kernel wrote to it: kernels
// resize `out=` arguments.
TT_DEVICE_API void follow(const at::Tensor& tensor, const at::Tensor& view);

// For the time of one op: device tensors go in as views, results come out on the device.
class TT_DEVICE_API Crossing {
 public:
  Crossing();
  ~Crossing();
  Crossing(const Crossing&) = delete;
  Crossing& operator=(const Crossing&) = delete;

  at::Tensor enter(const at::Tensor& tensor);
  at::Tensor leave(const at::Tensor& result);
  void finish() const;  // all that were entered follow their views
  c10::DeviceIndex device() const;

 private:
  struct Pair {
    at::Tensor tensor, view;
  };
  c10::SmallVector<Pair, 4> pairs_;
  int64_t begin_;  // for the profiler
};

}  // namespace tt::device
