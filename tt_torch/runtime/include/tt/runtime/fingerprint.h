// Finds writes that nobody announces: to a weight through Tensor.data, NumPy or DLPack.
#pragma once

#include <memory>

#include "tt/runtime/export.h"
#include "tt/runtime/tensor.h"

namespace tt::runtime {

// Remembers what memory holds as hashes, a thousandth of its size at most. Thread-safe.
class TT_RUNTIME_API Fingerprint {
 public:
  // Reads all of the memory. The memory must stay valid until the last call of `same`.
  explicit Fingerprint(const HostBuffer& memory);

  // Whether the memory holds the bytes that it held at construction. `whole` reads all of them. Without it,
  //   - memory of at most 64 KiB is read whole;
  //   - larger memory is read where the kernel saw writes (Linux 6.7 or newer);
  //   - elsewhere a 32nd of it is read, another one at each call. A write to 4 KiB without a gap is always
  //     seen, a write to n scattered lines of 64 bytes is missed with probability (31/32)^n, and after 32
  //     calls every write has been seen.
  bool same(bool whole = false);

  // Turns the kernel's help on or off for this process, and returns whether there is any. For tests and
  // measurements.
  static bool use_write_tracking(bool use);

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace tt::runtime
