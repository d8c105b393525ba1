// Random numbers on the device: each chip's generator draws from a CPU generator of its own.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>

#include "memory.h"

namespace tt::device {

class GeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit GeneratorImpl(c10::DeviceIndex chip, at::Generator host = at::detail::createCPUGenerator());

  void set_current_seed(uint64_t seed) override { host_.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { host_.set_offset(offset); }
  uint64_t get_offset() const override { return host_.get_offset(); }
  uint64_t current_seed() const override { return host_.current_seed(); }
  uint64_t seed() override;
  void set_state(const c10::TensorImpl& state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

  const at::Generator& host() const { return host_; }  // what kernels draw from

 private:
  GeneratorImpl* clone_impl() const override;
  at::Generator host_;
};

const at::Generator& default_generator(c10::DeviceIndex chip);  // -1: of the current chip
at::Generator new_generator(c10::DeviceIndex chip);

// The generator that a kernel draws from where an op of this chip was given `generator`.
at::Generator host_generator(const std::optional<at::Generator>& generator, c10::DeviceIndex chip);

}  // namespace tt::device
