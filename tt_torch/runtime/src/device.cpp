#include "tt/runtime/device.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "const_cache.h"
#include "memory.h"
#include "tt/runtime/error.h"
#include "values.h"

namespace tt::runtime {

namespace {

// Usable bytes per bank and number of banks, from the default system descriptors of tt-mlir's compiler.
struct ArchMemory {
  int64_t dram_bank, dram_banks, l1_bank, l1_banks;
};

ArchMemory memory_of(Arch arch) {
  if (arch == Arch::WormholeB0) return {1073741824 - 1024, 12, 1499136 - 1024, 8 * 8};
  return {4276383744 - 64, 8, 1572864 - 98304, 10 * 13};
}

int64_t installed_memory() {
  return static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGE_SIZE));
}

std::atomic<uint64_t> next_id{1};

std::shared_ptr<Device::Impl> make_device(const DeviceOptions& options) {
  const ArchMemory memory = memory_of(options.arch);
  auto impl = std::make_shared<Device::Impl>();
  impl->options = options;
  impl->id = next_id++;
  const int64_t l1 = (options.l1_bank_size ? options.l1_bank_size : memory.l1_bank) - options.l1_small_size;
  if (l1 <= 0)
    throw Error(ErrorKind::Device, "l1_small_size is " + std::to_string(options.l1_small_size) +
                                       ", which leaves no L1 for other buffers");
  impl->spaces[0] =
      Space(options.dram_bank_size ? options.dram_bank_size : memory.dram_bank, memory.dram_banks);
  impl->spaces[1] = Space(l1, memory.l1_banks);
  impl->spaces[2] = Space(options.host_memory_size ? options.host_memory_size : installed_memory(), 1);
  return impl;
}

}  // namespace

Device Device::open(const DeviceOptions& options) {
  DeviceOptions filled = options;
  const auto& mesh = options.mesh_shape;
  const auto is_possible = [](int64_t size) { return size >= 1 && size <= 64; };
  if (mesh.size() != 2 || !std::all_of(mesh.begin(), mesh.end(), is_possible) || mesh[0] * mesh[1] > 64)
    throw Error(ErrorKind::Device,
                "mesh_shape must be [rows, columns] of 1 to 64 chips, and not " + describe(mesh));
  const int64_t chips = mesh[0] * mesh[1];
  if (filled.device_ids.empty())
    for (int64_t i = 0; i < chips; ++i) filled.device_ids.push_back(i);
  if (static_cast<int64_t>(filled.device_ids.size()) != chips)
    throw Error(ErrorKind::Device, "mesh_shape has " + std::to_string(chips) +
                                       " chips, but the number of device_ids is " +
                                       std::to_string(filled.device_ids.size()));
  const bool shares = options.own_chips > 0;
  if (shares != static_cast<bool>(options.gather) || options.own_chips < 0 || options.first_chip < 0 ||
      options.first_chip > chips - options.own_chips)
    throw Error(ErrorKind::Device, "the chips of this process must be chips of the mesh");
  if (options.dram_bank_size < 0 || options.l1_bank_size < 0 || options.l1_small_size < 0 ||
      options.host_memory_size < 0 || options.num_hw_cqs < 1 || options.num_hw_cqs > 2)
    throw Error(ErrorKind::Device, "memory sizes must not be negative and num_hw_cqs must be 1 or 2");
  return Device(make_device(filled));
}

Device Device::shared(Arch arch, int64_t chip) {
  static std::mutex mutex;
  // Never destroyed, so that it outlives every tensor.
  static auto& open_devices = *new std::map<std::pair<Arch, int64_t>, Device>();
  std::lock_guard lock(mutex);
  const auto key = std::pair(arch, chip);
  const auto it = open_devices.find(key);
  if (it != open_devices.end() && it->second.is_open()) return it->second;
  DeviceOptions options;
  options.arch = arch;
  options.device_ids = {chip};
  return open_devices.insert_or_assign(key, open(options)).first->second;
}

Device Device::submesh(std::vector<int64_t> shape, std::vector<int64_t> offset) const {
  impl_->require_open();
  const auto& mesh = impl_->options.mesh_shape;
  DeviceOptions part = impl_->options;
  if (part.gather) throw Error(ErrorKind::Device, "a mesh that several processes share has no submesh");
  if (shape.size() != 2 || offset.size() != 2)
    throw Error(ErrorKind::Device, "shape and offset of a submesh must be [rows, columns]");
  for (size_t i = 0; i < 2; ++i)
    if (shape[i] < 1 || offset[i] < 0 || shape[i] > mesh[i] - offset[i])
      throw Error(ErrorKind::Device, "submesh " + describe(shape) + " at offset " + describe(offset) +
                                         " is not inside mesh " + describe(mesh));
  part.mesh_shape = shape;
  part.device_ids.clear();
  for (int64_t row = 0; row < shape[0]; ++row)
    for (int64_t column = 0; column < shape[1]; ++column)
      part.device_ids.push_back(impl_->options.device_ids[(row + offset[0]) * mesh[1] + column + offset[1]]);
  return Device(make_device(part));
}

const DeviceOptions& Device::options() const { return impl_->options; }

bool Device::is_open() const { return impl_->open; }

void Device::close() {
  ConstCache::instance().drop_device(impl_->id);
  std::lock_guard lock(impl_->mutex);
  impl_->open = false;
  for (const auto& [key, buffer] : impl_->live)
    impl_->spaces[static_cast<size_t>(buffer.space)].release(buffer.address, buffer.per_bank);
  impl_->live.clear();
}

MemoryStats Device::memory(BufferType which) const {
  if (which == BufferType::Host)
    throw Error(ErrorKind::Device, "only dram and l1 have memory statistics, host has none");
  std::lock_guard lock(impl_->mutex);
  const Space& space = impl_->spaces[static_cast<size_t>(which)];
  MemoryStats stats{space.bank_size * space.banks,
                    space.used * space.banks,
                    space.peak * space.banks,
                    space.largest_free(),
                    space.banks,
                    {}};
  for (const auto& [key, buffer] : impl_->live)
    if (buffer.space == which) stats.live.push_back({buffer.name, buffer.total});
  std::sort(stats.live.begin(), stats.live.end(), [](auto& a, auto& b) { return a.bytes > b.bytes; });
  return stats;
}

}  // namespace tt::runtime
