// A program of a binary, planned for a device.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "tt/runtime/binary.h"
#include "tt/runtime/device.h"
#include "tt/runtime/tensor.h"

namespace tt::runtime {

using Input = std::variant<HostBuffer, Tensor>;

// What an op callback sees. The outputs are contiguous and readable only during the call.
struct OpEvent {
  std::string op, location, debug_info, program;
  std::vector<HostBuffer> outputs;
};
using OpCallback = std::function<void(const OpEvent&)>;

struct ProgramMemory {
  int64_t dram_peak = 0, l1_peak = 0;  // bytes over all banks, resident tensors included
  int64_t host_arena = 0;              // bytes of host memory that hold the emulated intermediates
};

class TT_RUNTIME_API Executable {
 public:
  // Resolves kernels and plans buffers. Throws UnsupportedBinary naming every op without a kernel.
  Executable(const Binary& binary, size_t program, const Device& device);

  // Writes results into `outputs`, converting to their data types. Thread-safe: calls take turns. A call from
  // inside the executable's own callback is a Busy error; another executable may be called there.
  void run(std::span<const Input> inputs, std::span<const HostBuffer> outputs);

  // An empty function turns it off. From inside a callback it takes effect with the next run.
  void set_callback(OpCallback callback);
  const ProgramInfo& info() const;
  ProgramMemory memory() const;  // also from inside a callback

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace tt::runtime
