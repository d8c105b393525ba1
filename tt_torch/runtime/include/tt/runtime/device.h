// Emulated devices and their memory.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tt/runtime/types.h"

namespace tt::runtime {

enum class Arch : uint8_t { WormholeB0, Blackhole };

// Writes the values of all chips of a mesh to `all`, in the order of the chips. `own` has the values of this
// process's chips. All processes call it for the same ops in the same order. `op` names the op, for errors.
using Gather =
    std::function<void(const std::string& op, std::span<const std::byte> own, std::span<std::byte> all)>;

struct DeviceOptions {
  Arch arch = Arch::WormholeB0;
  std::vector<int64_t> mesh_shape = {1, 1};
  std::vector<int64_t> device_ids;  // empty: 0, 1, ...
  int64_t num_hw_cqs = 1;
  int64_t l1_small_size = 0;     // bytes per core that the general L1 allocator does not use
  int64_t dram_bank_size = 0;    // bytes per DRAM channel; 0: the size of the architecture
  int64_t l1_bank_size = 0;      // bytes of L1 per core; 0: the size of the architecture
  int64_t host_memory_size = 0;  // bytes that the host tensors of one run may take; 0: all installed memory
  bool allow_host_code = false;  // run the machine code that a binary has for the host
  bool exact = false;            // round as the matrix unit of a chip does; this is slow
  // For a mesh that several processes share: the first chip of this process, the number of its chips (0: all
  // chips of the mesh), and how values come from the other processes.
  int64_t first_chip = 0, own_chips = 0;
  Gather gather{};
};

struct BufferStats {
  std::string name;
  int64_t bytes = 0;
};

// The use of one memory space of one chip in bytes, summed over its banks. `largest_free` is per bank.
struct MemoryStats {
  int64_t total = 0, allocated = 0, peak = 0, largest_free = 0, banks = 0;
  std::vector<BufferStats> live;  // largest first
};

class TT_RUNTIME_API Device {
 public:
  static Device open(const DeviceOptions& options = {});
  // The device of this chip that the whole process shares. It is opened at first use, and again after a
  // close.
  static Device shared(Arch arch, int64_t chip = 0);

  const DeviceOptions& options() const;
  MemoryStats memory(BufferType space) const;
  Device submesh(std::vector<int64_t> shape, std::vector<int64_t> offset) const;
  bool is_open() const;
  void close();  // frees all device memory; later use throws a Device error

  struct Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  explicit Device(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// Owns bytes in a device's DRAM, spread over all of its banks. The destructor frees them. An allocation that
// does not fit throws a DeviceMemory error, which lists the live buffers.
class TT_RUNTIME_API DramBlock {
 public:
  DramBlock(const Device& device, int64_t bytes, const std::string& name);
  int64_t reserved() const;  // bytes over all banks, page alignment included

 private:
  std::shared_ptr<class DeviceBuffer> buffer_;
};

}  // namespace tt::runtime
