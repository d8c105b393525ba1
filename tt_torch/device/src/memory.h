// Device memory of eager tensors: taken from the runtime's DRAM, cached by size, counted.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Storage.h>

#include <memory>

namespace tt::device {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

class Pool;

// What a tensor's storage owns on a device. The emulated bytes lie in `host`, a CPU storage that kernels
// compute on.
struct Block {
  Pool* pool = nullptr;
  c10::Storage host;
  size_t bytes = 0, requested = 0;  // as reserved, rounded up; as asked for
  const void* opening = nullptr;    // of the device that it was reserved on
  std::shared_ptr<void> reservation;
};

class Allocator final : public c10::DeviceAllocator {
 public:
  static Allocator& instance();

  // On the current device. Raises torch.OutOfMemoryError when the device has no room.
  c10::DataPtr allocate(size_t bytes) override;
  // Device memory for bytes that a kernel has already written.
  c10::DataPtr adopt(c10::Storage host, c10::DeviceIndex device);
  // The block behind a storage of ours; null when it is empty or came from elsewhere.
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
