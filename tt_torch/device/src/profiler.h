// Reports an event to torch.profiler for each op and each copy on the device.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace tt::device {

enum class Work { Op, Copy };

// The start time of work on the device, in nanoseconds; 0 if no profiler runs.
int64_t begin_work();
void end_work(Work kind, int64_t begin, c10::DeviceIndex chip);

}  // namespace tt::device
