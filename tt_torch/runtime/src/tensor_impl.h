// A resident value: its plain form, and forms packed for a consumer.
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

// How a consumer wants a constant operand prepared, and back. Equal keys mean equal results.
struct Packing {
  std::string key;
  std::function<at::Tensor(const at::Tensor& plain)> pack;
  std::function<at::Tensor(const at::Tensor& packed)> unpack;
};

struct Tensor::Impl {
  Impl(TensorSpec spec, at::Tensor value, bool owned);
  ~Impl();

  at::Tensor plain();
  // A packed form, made at the first request. If we own the plain form, it is dropped in exchange, and made
  // again from a packed one should somebody ask for it. Programs for several batch sizes want several forms;
  // they are kept, since such programs may be called in turn.
  at::Tensor packed(const Packing& packing);

  const TensorSpec spec;
  const uint64_t version;
  std::shared_ptr<void> owner;           // of borrowed memory
  std::unique_ptr<DeviceBuffer> buffer;  // null for host specs

 private:
  std::mutex mutex_;
  at::Tensor restored() const;  // the plain form, whatever it takes
  struct Form {
    Packing packing;
    at::Tensor value;
  };
  at::Tensor plain_;
  std::vector<Form> forms_;  // the most recently made last
  const bool owned_;
};

}  // namespace tt::runtime
