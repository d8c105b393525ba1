#include "memory.h"

#include <array>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "chips.h"
#include "tt/runtime/device.h"
#include "tt/runtime/error.h"

namespace tt::device {

namespace {

using c10::CachingDeviceAllocator::DeviceStats;
using runtime::DramBlock;

// Rounds a size up to a multiple of 512 bytes, or of 64 KiB if it is at least 1 MiB. So a freed reservation
// can be used for another tensor of about the same size.
size_t rounded(size_t bytes) {
  const size_t step = bytes < (size_t{1} << 20) ? 512 : size_t{1} << 16;
  return (bytes + step - 1) / step * step;
}

void add(c10::CachingAllocator::StatArray& stats, int64_t amount) {
  auto& stat = stats[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
  if (amount >= 0)
    stat.increase(static_cast<size_t>(amount));
  else
    stat.decrease(static_cast<size_t>(-amount));
}

template <typename Reset>
void for_each_stat(DeviceStats& stats, Reset reset) {
  for (auto* array : {&stats.allocation, &stats.segment, &stats.active, &stats.allocated_bytes,
                      &stats.reserved_bytes, &stats.active_bytes, &stats.requested_bytes})
    for (auto& stat : *array) reset(stat);
}

}  // namespace

// The reservations of one device. Reservations in use are counted. Freed reservations are kept by size, for
// the next tensor.
class Pool {
 public:
  explicit Pool(c10::DeviceIndex index) : index_(index), device_(open_chip(index)) {}

  std::unique_ptr<Block> take(size_t bytes, c10::Storage host) {
    auto block = std::make_unique<Block>();
    block->host = std::move(host);
    block->requested = bytes;
    block->bytes = rounded(bytes);
    std::lock_guard lock(mutex_);
    reopen_if_closed();
    block->pool = this;
    block->opening = device_.impl().get();
    block->reservation = reserve(block->bytes);
    count(*block, 1);
    return block;
  }

  void give_back(Block& block) noexcept {
    std::lock_guard lock(mutex_);
    count(block, -1);
    if (block.opening == device_.impl().get()) free_[block.bytes].push_back(std::move(block.reservation));
  }

  void empty_cache() {
    std::lock_guard lock(mutex_);
    drop_cache();
  }

  c10::DeviceIndex index() const { return index_; }

  DeviceStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }

  template <typename Reset>
  void reset(Reset one) {
    std::lock_guard lock(mutex_);
    for_each_stat(stats_, one);
  }

  runtime::MemoryStats dram() {
    std::lock_guard lock(mutex_);
    reopen_if_closed();
    return device_.memory(runtime::BufferType::Dram);
  }

 private:
  // A closed device has freed all of its memory, so cached reservations are useless then.
  void reopen_if_closed() {
    if (device_.is_open()) return;
    drop_cache();
    device_ = open_chip(index_);
  }

  std::shared_ptr<void> reserve(size_t bytes) {
    auto& cached = free_[bytes];
    if (!cached.empty()) {
      auto found = std::move(cached.back());
      cached.pop_back();
      return found;
    }
    try {
      return reserve_new(bytes);
    } catch (const runtime::Error&) {
      ++stats_.num_alloc_retries;
      drop_cache();
    }
    try {
      return reserve_new(bytes);
    } catch (const runtime::Error& error) {
      ++stats_.num_ooms;
      TORCH_CHECK_WITH(OutOfMemoryError, false, "tt:", static_cast<int>(index_), ": ", error.what());
    }
  }

  std::shared_ptr<void> reserve_new(size_t bytes) {
    auto made = std::make_shared<DramBlock>(device_, static_cast<int64_t>(bytes),
                                            "eager tensor of up to " + std::to_string(bytes) + " bytes");
    ++stats_.num_device_alloc;
    add(stats_.segment, 1);
    add(stats_.reserved_bytes, made->reserved());
    return made;
  }

  void drop_cache() {
    for (const auto& [bytes, reservations] : free_)
      for (const auto& reservation : reservations) {
        add(stats_.segment, -1);
        add(stats_.reserved_bytes, -static_cast<DramBlock*>(reservation.get())->reserved());
        ++stats_.num_device_free;
      }
    free_.clear();
  }

  void count(const Block& block, int64_t sign) {
    const auto bytes = sign * static_cast<int64_t>(block.bytes);
    add(stats_.allocation, sign);
    add(stats_.active, sign);
    add(stats_.allocated_bytes, bytes);
    add(stats_.active_bytes, bytes);
    add(stats_.requested_bytes, sign * static_cast<int64_t>(block.requested));
  }

  const c10::DeviceIndex index_;
  std::mutex mutex_;
  runtime::Device device_;
  std::unordered_map<size_t, std::vector<std::shared_ptr<void>>> free_;
  DeviceStats stats_;
};

namespace {

Pool& pool_of(c10::DeviceIndex device) {
  // The pools are never destroyed, because tensors may outlive all other objects.
  static auto& pools = *new std::array<std::unique_ptr<Pool>, kMostChips>();
  static std::array<std::once_flag, kMostChips> made;
  check_chip(device);
  const auto at = static_cast<size_t>(device);
  std::call_once(made[at], [&] { pools[at] = std::make_unique<Pool>(device); });
  return *pools[at];
}

void report(const Block& block, int64_t sign) {
  if (!c10::memoryProfilingEnabled()) return;
  const DeviceStats stats = block.pool->stats();
  const auto now = [](const auto& stat) {
    return static_cast<size_t>(stat[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)].current);
  };
  c10::reportMemoryUsageToProfiler(block.host.mutable_data(), sign * static_cast<int64_t>(block.bytes),
                                   now(stats.allocated_bytes), now(stats.reserved_bytes),
                                   c10::Device(kType, block.pool->index()));
}

void release(void* context) {
  const std::unique_ptr<Block> block(static_cast<Block*>(context));
  block->pool->give_back(*block);
  report(*block, -1);
}

}  // namespace

Allocator& Allocator::instance() {
  static auto& allocator = *new Allocator();
  return allocator;
}

c10::DataPtr Allocator::allocate(size_t bytes) {
  const c10::Device device(kType, current_chip());
  if (bytes == 0) return {nullptr, device};
  // Reserves the device's memory first. If that fails, no host memory is allocated.
  std::unique_ptr<Block, decltype(&release)> block(pool_of(device.index()).take(bytes, {}).release(),
                                                   &release);
  block->host = {c10::Storage::use_byte_size_t(), static_cast<int64_t>(bytes), c10::GetAllocator(c10::kCPU),
                 /*resizable=*/true};
  void* data = block->host.mutable_data();
  report(*block, 1);
  return {data, block.release(), &release, device};
}

c10::DataPtr Allocator::adopt(c10::Storage host, c10::DeviceIndex device) {
  if (host.nbytes() == 0) return {nullptr, c10::Device(kType, device)};
  void* data = host.mutable_data();
  const size_t bytes = host.nbytes();
  std::unique_ptr<Block> block = pool_of(device).take(bytes, std::move(host));
  report(*block, 1);
  return {data, block.release(), &release, c10::Device(kType, device)};
}

const Block* Allocator::block_of(const c10::DataPtr& data) {
  return data.get_deleter() == &release ? static_cast<const Block*>(data.get_context()) : nullptr;
}

c10::DeleterFnPtr Allocator::raw_deleter() const { return nullptr; }

void Allocator::copy_data(void* destination, const void* source, size_t bytes) const {
  std::memcpy(destination, source, bytes);
}

void Allocator::emptyCache(c10::MempoolId_t) {
  for (c10::DeviceIndex device = 0; device < chip_count(); ++device) pool_of(device).empty_cache();
}

DeviceStats Allocator::getDeviceStats(c10::DeviceIndex device) { return pool_of(device).stats(); }

void Allocator::resetAccumulatedStats(c10::DeviceIndex device) {
  pool_of(device).reset([](auto& stat) { stat.reset_accumulated(); });
}

void Allocator::resetPeakStats(c10::DeviceIndex device) {
  pool_of(device).reset([](auto& stat) { stat.reset_peak(); });
}

std::pair<size_t, size_t> Allocator::getMemoryInfo(c10::DeviceIndex device) {
  const runtime::MemoryStats dram = pool_of(device).dram();
  return {static_cast<size_t>(dram.total - dram.allocated), static_cast<size_t>(dram.total)};
}

REGISTER_ALLOCATOR(kType, &Allocator::instance());

}  // namespace tt::device
