// The chips that exist, and the current chip of each thread.
#pragma once

#include <c10/core/Device.h>

#include <string_view>

#include "tt/runtime/device.h"

namespace tt::device {

constexpr c10::DeviceIndex kMostChips = 8;

// TT_TORCH_DEVICE_COUNT; 1 if it is not set, 0 if it is not a number from 1 to 8.
c10::DeviceIndex chip_count() noexcept;
c10::DeviceIndex current_chip() noexcept;
c10::DeviceIndex exchange_chip(c10::DeviceIndex chip) noexcept;  // returns the previous chip
void check_chip(c10::DeviceIndex chip);                          // raises an error if the chip does not exist

// The chip's device, which the whole process shares. Its architecture is TT_TORCH_ARCH.
runtime::Device open_chip(c10::DeviceIndex chip);

// The value of an environment variable; empty if it is not set.
std::string_view variable(const char* name);

}  // namespace tt::device
