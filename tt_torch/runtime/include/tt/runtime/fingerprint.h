// Finds writes that change no version number, such as writes to a weight through Tensor.data, NumPy or
// DLPack.
#pragma once

#include <memory>

#include "tt/runtime/export.h"
#include "tt/runtime/tensor.h"

namespace tt::runtime {

// Remembers the contents of memory as hashes, which take about 2 KiB. Thread-safe.
class TT_RUNTIME_API Fingerprint {
 public:
  // Reads all of the memory. The memory must stay valid until the last call of `same`.
  explicit Fingerprint(const HostBuffer& memory);

  // Whether the memory has the same bytes as at construction. With `whole`, all of them are read. Without it,
  //   - memory of at most 64 KiB is read completely;
  //   - larger memory is read if the kernel has seen writes to it (Linux 6.7 or newer);
  //   - without the kernel's help, 1/256 of larger memory is read, another part at each call. A write to
  //     64 KiB without a gap is always seen, a write to n scattered chunks of 128 bytes is missed with
  //     probability (255/256)^n, and after 256 calls every write has been seen.
  bool same(bool whole = false);

  // Turns the kernel's help on or off for this process, and returns whether it is used. For tests and
  // measurements.
  static bool use_write_tracking(bool use);

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace tt::runtime
