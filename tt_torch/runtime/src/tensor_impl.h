// A resident tensor: its plain form, and forms that are packed for a consumer.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "memory.h"
#include "tt/runtime/tensor.h"

namespace tt::runtime {

// How a constant operand is packed for a consumer, and unpacked again. Equal keys mean equal packed forms.
struct Packing {
  std::string key;
  std::function<at::Tensor(const at::Tensor& plain)> pack;
  std::function<at::Tensor(const at::Tensor& packed)> unpack;
};

struct Tensor::Impl {
  Impl(TensorSpec spec, at::Tensor value, bool owned, at::Tensor strided = {});
  ~Impl();

  at::Tensor plain();
  // The plain form for a single use. Unlike that of plain(), it is not kept if it has to be made.
  at::Tensor once();
  // A packed form, which is made at the first request. If we own the plain form, it is then dropped; it is
  // made again from a packed form if it is needed. Programs for several batch sizes want several forms. The
  // most recent ones are kept, because such programs may be called in turn.
  at::Tensor packed(const Packing& packing);
  // Gives up the memory of a weight that its owner has released, as far as other forms replace it: packed
  // forms give it back, and results of const-eval programs serve all calls that use only them.
  void release(const std::string& weight);

  const TensorSpec spec;
  const uint64_t version;
  std::atomic<bool> direct =
      false;           // a program has read it by itself, and not only through const-eval programs
  bool state = false;  // programs and the host change it, so nothing may be derived from it and kept
  std::unique_ptr<DeviceBuffer> buffer;  // null for host specs

 private:
  std::mutex mutex_;
  at::Tensor restored() const;  // the plain form, unpacked if it was dropped
  struct Form {
    Packing packing;
    at::Tensor value;
  };
  at::Tensor plain_;
  at::Tensor strided_;       // the caller's memory, if the plain form would only put its elements in order
  std::vector<Form> forms_;  // the most recently made last
  bool owned_;
  std::string released_;  // the name of a released weight whose plain form is gone
};

}  // namespace tt::runtime
