// Device memory of eager tensors. It is allocated in the runtime's DRAM, cached by size, and counted.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Storage.h>

#include <memory>

namespace tt::device {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

class Pool;

// The memory that a tensor's storage owns on a device. The emulated bytes are in `host`, a CPU storage, on
// which kernels compute.
struct Block {
  Pool* pool = nullptr;
  c10::Storage host;
  size_t bytes = 0, requested = 0;  // the reserved bytes, which are rounded up, and the requested ones
  const void* opening = nullptr;    // identifies the open device on which it was reserved
  std::shared_ptr<void> reservation;
};

class Allocator final : public c10::DeviceAllocator {
 public:
  static Allocator& instance();

  // Allocates on the current device. Raises torch.OutOfMemoryError if the device does not have enough free
  // memory.
  c10::DataPtr allocate(size_t bytes) override;
  // Allocates device memory for bytes that a kernel has already written.
  c10::DataPtr adopt(c10::Storage host, c10::DeviceIndex device);
  // The block of a storage that this allocator made; null if it is empty or another allocator made it.
  static const Block* block_of(const c10::DataPtr& data);

  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* destination, const void* source, size_t bytes) const override;
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override;
  void recordStream(const c10::DataPtr&, c10::Stream) override {}  // streams run in program order
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override;
  void resetAccumulatedStats(c10::DeviceIndex device) override;
  void resetPeakStats(c10::DeviceIndex device) override;
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override;  // free, total
};

}  // namespace tt::device
