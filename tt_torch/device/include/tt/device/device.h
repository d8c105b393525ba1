// device="tt" for PyTorch in C++ programs. A program that links the library has the device; tensors are made
// and used with PyTorch's own functions: torch::randn({4, 4}, torch::Device("tt")).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#define TT_DEVICE_API __attribute__((visibility("default")))

namespace tt::device {

TT_DEVICE_API int64_t device_count();

// The number of calls of each op that ran on the CPU, because the device has no kernel for it.
TT_DEVICE_API std::map<std::string, int64_t> fallback_counts();
TT_DEVICE_API void clear_fallback_counts();

// Functions on the default random number generator of a device; -1 is the current device.
TT_DEVICE_API void manual_seed(int64_t device, uint64_t seed);
TT_DEVICE_API uint64_t initial_seed(int64_t device);
TT_DEVICE_API std::string rng_state(int64_t device);
TT_DEVICE_API void set_rng_state(int64_t device, const std::string& state);

}  // namespace tt::device
