#include "generator.h"

#include <ATen/EmptyTensor.h>

#include <array>
#include <cstring>

#include "chips.h"
#include "tt/device/device.h"

namespace tt::device {

namespace {
c10::DeviceIndex or_current(c10::DeviceIndex chip) { return chip < 0 ? current_chip() : chip; }
}  // namespace

GeneratorImpl::GeneratorImpl(c10::DeviceIndex chip, at::Generator host)
    : c10::GeneratorImpl(c10::Device(kType, chip), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      host_(std::move(host)) {}

uint64_t GeneratorImpl::seed() { return host_.seed(); }

void GeneratorImpl::set_state(const c10::TensorImpl& state) {
  host_.unsafeGetGeneratorImpl()->set_state(state);
}

c10::intrusive_ptr<c10::TensorImpl> GeneratorImpl::get_state() const {
  return host_.unsafeGetGeneratorImpl()->get_state();
}

GeneratorImpl* GeneratorImpl::clone_impl() const { return new GeneratorImpl(device_.index(), host_.clone()); }

const at::Generator& default_generator(c10::DeviceIndex chip) {
  static const auto generators = [] {
    std::array<at::Generator, kMostChips> made;
    for (size_t i = 0; i < made.size(); ++i)
      made[i] = at::make_generator<GeneratorImpl>(static_cast<c10::DeviceIndex>(i));
    return made;
  }();
  check_chip(or_current(chip));
  return generators[static_cast<size_t>(or_current(chip))];
}

at::Generator new_generator(c10::DeviceIndex chip) {
  check_chip(or_current(chip));
  return at::make_generator<GeneratorImpl>(or_current(chip));
}

at::Generator host_generator(const std::optional<at::Generator>& generator, c10::DeviceIndex chip) {
  const bool given = generator && generator->defined();
  const at::Generator& chosen = given ? *generator : default_generator(chip);
  TORCH_CHECK(chosen.device().type() == kType, "expected a generator of device tt, got one of ",
              chosen.device());
  return chosen.get<GeneratorImpl>()->host();
}

void manual_seed(int64_t device, uint64_t seed) {
  at::Generator generator = default_generator(static_cast<c10::DeviceIndex>(device));
  std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

uint64_t initial_seed(int64_t device) {
  return default_generator(static_cast<c10::DeviceIndex>(device)).current_seed();
}

std::string rng_state(int64_t device) {
  const at::Tensor state = default_generator(static_cast<c10::DeviceIndex>(device)).get_state();
  return {static_cast<const char*>(state.const_data_ptr()), state.nbytes()};
}

void set_rng_state(int64_t device, const std::string& state) {
  const at::Tensor bytes = at::detail::empty_cpu({static_cast<int64_t>(state.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), state.data(), state.size());
  at::Generator generator = default_generator(static_cast<c10::DeviceIndex>(device));
  std::lock_guard lock(generator.mutex());
  generator.set_state(bytes);
}

}  // namespace tt::device
