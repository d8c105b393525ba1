// Which chips there are, and which one the calling thread uses.
#pragma once

#include <c10/core/Device.h>

#include "tt/runtime/device.h"

namespace tt::device {

constexpr c10::DeviceIndex kMostChips = 8;

// TT_TORCH_DEVICE_COUNT, 1 if it is not set, 0 if it is not a number of 1 to 8.
c10::DeviceIndex chip_count() noexcept;
c10::DeviceIndex current_chip() noexcept;
c10::DeviceIndex exchange_chip(c10::DeviceIndex chip) noexcept;  // returns the one before
void check_chip(c10::DeviceIndex chip);                          // raises for a chip that does not exist

// The chip's device that the whole process shares, of the architecture TT_TORCH_ARCH.
runtime::Device open_chip(c10::DeviceIndex chip);

}  // namespace tt::device
