// What torch.profiler is told of the device: an event for each op and each copy.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace tt::device {

enum class Work { Op, Copy };

// When work on the device begins, in nanoseconds; 0 while nobody profiles.
int64_t begin_work();
void end_work(Work kind, int64_t begin, c10::DeviceIndex chip);

}  // namespace tt::device
