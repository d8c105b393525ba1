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

// The argument of an op callback. The outputs are contiguous and may be read only during the callback.
struct OpEvent {
  std::string op, location, debug_info, program;
  std::vector<HostBuffer> outputs;
};
using OpCallback = std::function<void(const OpEvent&)>;

struct ProgramMemory {
  int64_t dram_peak = 0, l1_peak = 0;  // bytes over all banks, resident tensors included
  int64_t host_arena = 0;              // bytes of host memory that hold the values of intermediates
};

class TT_RUNTIME_API Executable {
 public:
  // Resolves kernels and plans buffers. Throws an UnsupportedBinary error that names every op without a
  // kernel.
  Executable(const Binary& binary, size_t program, const Device& device);

  // A program for a mesh takes the inputs of the first chip, then the inputs of the second chip, and so on.
  // Its outputs have the same order. Chips may have the same input.
  // Writes the results into `outputs`, converted to the data types of these buffers. Thread-safe: concurrent
  // calls run one after the other. A call from inside the executable's own callback throws a Busy error;
  // another executable may be called there.
  void run(std::span<const Input> inputs, std::span<const HostBuffer> outputs);

  // Sets the callback; an empty function removes it. A callback that is set from inside a callback is used
  // from the next run on.
  void set_callback(OpCallback callback);
  const ProgramInfo& info() const;
  ProgramMemory memory() const;  // may be called from inside a callback

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace tt::runtime
