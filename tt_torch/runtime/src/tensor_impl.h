// A resident tensor: its plain form, and forms that are packed for a consumer.
#pragma once

#include <ATen/core/Tensor.h>

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
  Impl(TensorSpec spec, at::Tensor value, bool owned);
  ~Impl();

  at::Tensor plain();
  // A packed form, which is made at the first request. If we own the plain form, it is then dropped; it is
  // made again from a packed form if it is needed. Programs for several batch sizes want several forms. The
  // most recent ones are kept, because such programs may be called in turn.
  at::Tensor packed(const Packing& packing);

  const TensorSpec spec;
  const uint64_t version;
  bool state = false;           // programs and the host change it, so nothing may be derived from it and kept
  std::shared_ptr<void> owner;  // the owner of borrowed memory
  std::unique_ptr<DeviceBuffer> buffer;  // null for host specs

 private:
  std::mutex mutex_;
  at::Tensor restored() const;  // the plain form, unpacked if it was dropped
  struct Form {
    Packing packing;
    at::Tensor value;
  };
  at::Tensor plain_;
  std::vector<Form> forms_;  // the most recently made last
  const bool owned_;
};

}  // namespace tt::runtime
