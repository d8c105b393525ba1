// The hooks that PyTorch calls on an accelerator: availability, generators, pinned memory.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/DeviceGuard.h>

#include <cstring>
#include <map>
#include <mutex>

#include "chips.h"
#include "generator.h"
#include "memory.h"

namespace tt::device {

namespace {

// Pinned host memory. The emulated device can read all memory, so this class only remembers which memory was
// requested as pinned.
class PinnedMemory final : public at::HostAllocator {
 public:
  static PinnedMemory& instance() {
    static auto& memory = *new PinnedMemory();
    return memory;
  }

  c10::DataPtr allocate(size_t bytes) override {
    c10::DataPtr memory = c10::GetAllocator(c10::kCPU)->allocate(bytes);
    if (bytes == 0) return memory;
    std::lock_guard lock(mutex_);
    add(static_cast<int64_t>(bytes));
    void* data = memory.get();
    auto* block = new Pinned{std::move(memory), bytes};
    blocks_[data] = bytes;
    return {data, block, &release, c10::Device(c10::kCPU)};
  }

  bool holds(const void* pointer) {
    std::lock_guard lock(mutex_);
    auto next = blocks_.upper_bound(pointer);
    if (next == blocks_.begin()) return false;
    const auto& [start, bytes] = *std::prev(next);
    return static_cast<const char*>(pointer) < static_cast<const char*>(start) + bytes;
  }

  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
  bool record_event(void* pointer, void*, c10::Stream) override { return holds(pointer); }
  void empty_cache() override {}  // nothing is cached
  at::HostStats get_stats() override {
    std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_accumulated_stats() override {
    std::lock_guard lock(mutex_);
    stats_.allocations.reset_accumulated();
    stats_.allocated_bytes.reset_accumulated();
  }
  void reset_peak_stats() override {
    std::lock_guard lock(mutex_);
    stats_.allocations.reset_peak();
    stats_.allocated_bytes.reset_peak();
  }

 private:
  struct Pinned {
    c10::DataPtr memory;
    size_t bytes;
  };

  static void release(void* context) {
    const std::unique_ptr<Pinned> block(static_cast<Pinned*>(context));
    PinnedMemory& self = instance();
    std::lock_guard lock(self.mutex_);
    self.blocks_.erase(block->memory.get());
    self.add(-static_cast<int64_t>(block->bytes));
  }

  void add(int64_t bytes) {
    if (bytes > 0) {
      stats_.allocations.increase(1);
      stats_.allocated_bytes.increase(static_cast<size_t>(bytes));
    } else {
      stats_.allocations.decrease(1);
      stats_.allocated_bytes.decrease(static_cast<size_t>(-bytes));
    }
  }

  std::mutex mutex_;
  std::map<const void*, size_t> blocks_;
  at::HostStats stats_;
};

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return chip_count() > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return chip_count(); }
  c10::DeviceIndex getCurrentDevice() const override { return current_chip(); }
  void setCurrentDevice(c10::DeviceIndex chip) const override { exchangeDevice(chip); }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex chip) const override {
    check_chip(chip);
    return exchange_chip(chip);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex chip) const override {
    return chip < 0 ? current_chip() : exchangeDevice(chip);
  }
  at::Device getDeviceFromPtr(void*) const override { return {kType, current_chip()}; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex chip) const override {
    return default_generator(chip);
  }
  at::Generator getNewGenerator(c10::DeviceIndex chip) const override { return new_generator(chip); }
  bool isPinnedPtr(const void* data) const override { return PinnedMemory::instance().holds(data); }
  at::Allocator* getPinnedMemoryAllocator() const override { return &PinnedMemory::instance(); }

  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    const c10::DeviceGuard guard(storage.device());
    c10::DataPtr grown = Allocator::instance().allocate(bytes);
    if (const size_t kept = std::min(bytes, storage.nbytes())) std::memcpy(grown.get(), storage.data(), kept);
    storage.set_data_ptr_noswap(std::move(grown));
    storage.set_nbytes(bytes);
  }
};

REGISTER_HOST_ALLOCATOR(kType, &PinnedMemory::instance());

[[maybe_unused]] const bool registered = [] {
  c10::register_privateuse1_backend("tt");
  at::RegisterPrivateUse1HooksInterface(new Hooks());
  return true;
}();

}  // namespace

}  // namespace tt::device
