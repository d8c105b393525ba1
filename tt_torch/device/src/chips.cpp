#include "chips.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tt/device/device.h"

namespace tt::device {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

namespace {

thread_local c10::DeviceIndex current = 0;

c10::DeviceIndex read_count() {
  const std::string_view text = variable("TT_TORCH_DEVICE_COUNT");
  if (text.empty()) return 1;
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool valid = error == std::errc() && end == text.data() + text.size() && count >= 1;
  return valid && count <= kMostChips ? static_cast<c10::DeviceIndex>(count) : 0;
}

runtime::Arch arch() {
  const std::string_view name = variable("TT_TORCH_ARCH");
  if (name.empty() || name == "wormhole_b0") return runtime::Arch::WormholeB0;
  TORCH_CHECK_VALUE(name == "blackhole", "TT_TORCH_ARCH is ", name, ", expected wormhole_b0 or blackhole");
  return runtime::Arch::Blackhole;
}

}  // namespace

c10::DeviceIndex chip_count() noexcept {
  static const c10::DeviceIndex count = read_count();
  return count;
}

int64_t device_count() { return chip_count(); }

c10::DeviceIndex current_chip() noexcept { return current; }

c10::DeviceIndex exchange_chip(c10::DeviceIndex chip) noexcept {
  return chip < 0 ? current : std::exchange(current, chip);
}

void check_chip(c10::DeviceIndex chip) {
  TORCH_CHECK(chip_count() > 0, "TT_TORCH_DEVICE_COUNT is \"", variable("TT_TORCH_DEVICE_COUNT"),
              "\", expected a number from 1 to ", static_cast<int>(kMostChips));
  TORCH_CHECK(chip >= 0 && chip < chip_count(), "there is no device tt:", static_cast<int>(chip),
              "; the number of devices is ", static_cast<int>(chip_count()),
              ", set TT_TORCH_DEVICE_COUNT to change it");
}

runtime::Device open_chip(c10::DeviceIndex chip) {
  std::string device(variable("TT_TORCH_DEVICE"));
  std::transform(device.begin(), device.end(), device.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  TORCH_CHECK(device != "ttnn",
              "TT_TORCH_DEVICE is \"ttnn\", but device=\"tt\" is an emulated chip; compile the model with "
              "torch.compile and leave its tensors on the CPU, or unset TT_TORCH_DEVICE");
  TORCH_CHECK_VALUE(device.empty() || device == "emulated", "TT_TORCH_DEVICE is \"", device,
                    "\", expected emulated or ttnn");
  return runtime::Device::shared(arch(), chip);
}

}  // namespace tt::device
