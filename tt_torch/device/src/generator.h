// Random numbers on the device. Each chip's generator draws from its own CPU generator.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

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

  const at::Generator& host() const { return host_; }  // the generator that kernels draw from

 private:
  GeneratorImpl* clone_impl() const override;
  at::Generator host_;
};

const at::Generator& default_generator(c10::DeviceIndex chip);  // -1 is the current chip
at::Generator new_generator(c10::DeviceIndex chip);

// The CPU generator from which a kernel draws if an op on this chip has the argument `generator`. Without
// this argument, the kernel draws from the CPU generator of the chip's default generator.
at::Generator host_generator(const std::optional<at::Generator>& generator, c10::DeviceIndex chip);

}  // namespace tt::device
