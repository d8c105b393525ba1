#include "memory.h"

#include <algorithm>

#include "tt/runtime/error.h"
#include "values.h"

namespace tt::runtime {

namespace {

constexpr int64_t kPageAlignment = 32;
constexpr int64_t kL1Alignment = 16;  // of the rows of a sharded tensor (ttnn 0.81.1)
constexpr size_t kListed = 8;         // buffers that an error lists

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The bytes of one element of a type that a device can hold.
int64_t element_bytes(DataType dtype) {
  switch (dtype) {
    case DataType::UInt8:
      return 1;
    case DataType::BFloat16:
    case DataType::UInt16:
      return 2;
    default:
      return 4;
  }
}

// A block-float tile has 64 shared exponents, and one byte (BFP_BFloat8) or half a byte (BFP_BFloat4) per
// value.
int64_t tile_bytes(DataType dtype) {
  if (dtype == DataType::BfpBFloat8) return 1088;
  if (dtype == DataType::BfpBFloat4) return 576;
  return kTile * kTile * element_bytes(dtype);
}

}  // namespace

Space::Space(int64_t size, int64_t count) : bank_size(size), banks(count) { free_[0] = size; }

std::optional<int64_t> Space::allocate(int64_t bytes) {
  if (bytes == 0) return 0;
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it)
    if (it->second >= bytes && (best == free_.end() || it->second < best->second)) best = it;
  if (best == free_.end()) return std::nullopt;
  const auto [address, size] = *best;
  free_.erase(best);
  if (size > bytes) free_[address + bytes] = size - bytes;
  used += bytes;
  peak = std::max(peak, used);
  return address;
}

void Space::release(int64_t address, int64_t bytes) {
  if (bytes == 0) return;
  used -= bytes;
  auto next = free_.lower_bound(address);
  if (next != free_.end() && address + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == address) {
      previous->second += bytes;
      return;
    }
  }
  free_[address] = bytes;
}

int64_t Space::largest_free() const {
  int64_t largest = 0;
  for (const auto& [address, size] : free_) largest = std::max(largest, size);
  return largest;
}

Footprint footprint(const TensorSpec& spec, int64_t banks) {
  const int64_t volume = checked_volume(spec.shape);
  if (volume == 0) return {};
  const int64_t width = spec.shape.empty() ? 1 : spec.shape.back();
  const int64_t height = spec.shape.size() < 2 ? 1 : spec.shape[spec.shape.size() - 2];
  const bool tiled = spec.layout == PageLayout::Tile;
  const int64_t page = tiled ? tile_bytes(spec.dtype)
                             : ceil_div(width * element_bytes(spec.dtype), kPageAlignment) * kPageAlignment;
  if (spec.shard && spec.memory_layout != MemoryLayout::Interleaved) {
    const ShardSpec& shard = *spec.shard;
    const int64_t alignment = spec.buffer == BufferType::L1 ? kL1Alignment : kPageAlignment;
    const int64_t row = ceil_div(shard.width * element_bytes(spec.dtype), alignment) * alignment;
    const int64_t bytes =
        tiled ? ceil_div(shard.height, kTile) * ceil_div(shard.width, kTile) * page : shard.height * row;
    return {bytes, bytes * shard.cores};
  }
  const int64_t pages =
      tiled ? volume / (height * width) * ceil_div(height, kTile) * ceil_div(width, kTile) : volume / width;
  return {ceil_div(pages, banks) * page, pages * page};
}

void Device::Impl::require_open() const {
  if (!open) throw Error(ErrorKind::Device, "the device was closed; open another one to continue");
}

DeviceBuffer::DeviceBuffer(std::shared_ptr<Device::Impl> device, const TensorSpec& spec,
                           const std::string& label)
    : device_(std::move(device)) {
  reserve(label + " " + describe(spec), spec.buffer, [&](int64_t banks) { return footprint(spec, banks); });
}

DeviceBuffer::DeviceBuffer(std::shared_ptr<Device::Impl> device, int64_t pages, const std::string& name)
    : device_(std::move(device)) {
  reserve(name, BufferType::Dram,
          [&](int64_t banks) { return Footprint{ceil_div(pages, banks) * kDramPage, pages * kDramPage}; });
}

void DeviceBuffer::reserve(const std::string& name, BufferType where,
                           const std::function<Footprint(int64_t banks)>& size_of) {
  std::lock_guard lock(device_->mutex);
  device_->require_open();
  Space& space = device_->spaces[static_cast<size_t>(where)];
  const Footprint size = size_of(space.banks);
  LiveBuffer buffer{name, where, 0, size.per_bank, size.total};
  const auto address = space.allocate(size.per_bank);
  if (!address) {
    std::vector<LiveBuffer> live;
    for (const auto& [key, other] : device_->live) live.push_back(other);
    throw_exhausted(buffer, space, std::move(live));
  }
  buffer.address = *address;
  reserved_ = size.per_bank * space.banks;
  key_ = device_->next_buffer++;
  device_->live.emplace(key_, std::move(buffer));
  ++device_->generation;
}

DeviceBuffer::~DeviceBuffer() {
  std::lock_guard lock(device_->mutex);
  const auto it = device_->live.find(key_);
  if (it == device_->live.end()) return;
  device_->spaces[static_cast<size_t>(it->second.space)].release(it->second.address, it->second.per_bank);
  device_->live.erase(it);
  ++device_->generation;
}

DramBlock::DramBlock(const Device& device, int64_t bytes, const std::string& name)
    : buffer_(std::make_shared<DeviceBuffer>(device.impl(), ceil_div(bytes, kDramPage), name)) {}

int64_t DramBlock::reserved() const { return buffer_->reserved(); }

void throw_exhausted(const LiveBuffer& wanted, const Space& space, std::vector<LiveBuffer> live) {
  std::erase_if(live, [&](const LiveBuffer& buffer) { return buffer.space != wanted.space; });
  std::sort(live.begin(), live.end(), [](auto& a, auto& b) { return a.total > b.total; });
  constexpr const char* spaces[] = {"DRAM of the device", "L1 of the device", "host memory for the device"};
  std::string text = std::string(spaces[static_cast<size_t>(wanted.space)]) +
                     " is exhausted: " + wanted.name + " needs " + std::to_string(wanted.per_bank) +
                     " bytes in each of " + std::to_string(space.banks) +
                     " banks, the largest free block is " + std::to_string(space.largest_free()) + " of " +
                     std::to_string(space.bank_size) + "\n  largest live buffers:";
  for (size_t i = 0; i < std::min(live.size(), kListed); ++i)
    text += "\n    " + std::to_string(live[i].total) + " bytes: " + live[i].name;
  text += live.empty() ? " none\n  use smaller inputs" : "\n  free some of them, or use smaller inputs";
  throw Error(ErrorKind::DeviceMemory, text);
}

}  // namespace tt::runtime
