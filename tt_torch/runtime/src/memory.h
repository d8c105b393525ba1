// The emulated memories: the physical sizes of tensors, and an allocator for each memory space.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tt/runtime/device.h"

namespace tt::runtime {

constexpr int64_t kTile = 32;  // rows of a tile, and its columns

// An allocator. The same addresses are in use in every bank of a space, as in tt-metal's lock-step allocator,
// so one free list describes all banks.
class Space {
 public:
  Space() = default;
  Space(int64_t bank_size, int64_t banks);
  std::optional<int64_t> allocate(int64_t bytes_per_bank);  // the address; takes the smallest block that fits
  void release(int64_t address, int64_t bytes_per_bank);
  int64_t largest_free() const;
  int64_t bank_size = 0, banks = 1, used = 0, peak = 0;  // bytes per bank

 private:
  std::map<int64_t, int64_t> free_;  // address -> size
};

struct Footprint {
  int64_t per_bank = 0, total = 0;
};

// The bytes that a tensor takes in a space of `banks` banks, including tile padding and page alignment.
Footprint footprint(const TensorSpec& spec, int64_t banks);

struct LiveBuffer {
  std::string name;
  BufferType space = BufferType::Dram;
  int64_t address = 0, per_bank = 0, total = 0;
};

struct Device::Impl {
  DeviceOptions options;
  uint64_t id = 0;
  mutable std::mutex mutex;
  std::atomic<bool> open{true};
  std::atomic<uint64_t> generation{0};  // changes with every allocation and release
  Space spaces[3];                      // Dram, L1, and Host: the limit of a program's host tensors
  std::map<uint64_t, LiveBuffer> live;
  uint64_t next_buffer = 0;

  void require_open() const;
};

constexpr int64_t kDramPage = 512;  // bytes in a page of untyped memory; a page lies in one bank

// Owns a buffer on a device. The destructor releases it, unless the device was closed before.
class DeviceBuffer {
 public:
  DeviceBuffer(std::shared_ptr<Device::Impl> device, const TensorSpec& spec, const std::string& label);
  // A whole number of pages in DRAM.
  DeviceBuffer(std::shared_ptr<Device::Impl> device, int64_t pages, const std::string& name);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  int64_t reserved() const { return reserved_; }  // bytes over all banks

 private:
  void reserve(const std::string& name, BufferType space,
               const std::function<Footprint(int64_t banks)>& size);
  std::shared_ptr<Device::Impl> device_;
  uint64_t key_;
  int64_t reserved_ = 0;
};

// Throws the error for an allocation that does not fit; the message lists the largest live buffers of the
// space.
[[noreturn]] void throw_exhausted(const LiveBuffer& wanted, const Space& space, std::vector<LiveBuffer> live);

}  // namespace tt::runtime
