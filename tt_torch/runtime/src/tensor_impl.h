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
  // The plain form for a single use. Unlike plain(), this does not keep a form that it has to make.
  at::Tensor once();
  // A packed form, which is made at the first request. If we own the plain form, it is then dropped. It is
  // made again from a packed form when it is needed. Programs for several batch sizes want several forms. The
  // most recent ones are kept, because calls may alternate between these programs.
  at::Tensor packed(const Packing& packing);
  // Gives up the plain form of a weight that its owner has released, if something replaces it. If there are
  // packed forms, it can be made again from them. Otherwise there must be results of const-eval programs, and
  // no program may have read the weight by itself. A state is kept.
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
