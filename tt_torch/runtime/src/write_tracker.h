// Finds out from the kernel which pages were written to.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace tt::runtime {

// Whole pages: the addresses of the first byte and of the byte after the last one.
struct Pages {
  uint64_t begin = 0, end = 0;
  bool operator==(const Pages&) const = default;
};

// Uses userfaultfd with asynchronous write protection, which Linux has since 6.7. The kernel removes the
// protection of a page at the first write, and an ioctl of /proc/self/pagemap finds such pages and protects
// them again.
class WriteTracker {
 public:
  static WriteTracker& instance();

  // Begins to watch pages. Returns false if the kernel does not offer this, or if other processes share the
  // pages.
  bool watch(Pages pages);
  void forget(Pages pages);

  // A number that grows if watched pages were written to. It covers all writes to `pages` up to now. It is
  // nullopt if these pages are not watched any more. There is one number for all pages, because finding a
  // write clears its mark, and ranges may overlap.
  std::optional<uint64_t> writes(Pages pages);

  bool use(bool use);  // returns whether the tracker is used and ready

 private:
  WriteTracker();
  bool ready() const;
  std::optional<bool> scan(Pages pages, uint64_t category, uint64_t flags) const;
  std::optional<bool> take_written(Pages pages) const;
  bool overlaps(Pages pages) const;

  std::mutex mutex_;
  std::vector<Pages> watched_;  // has a range once for each call of watch()
  uint64_t writes_ = 0;
  bool use_ = true;
  int faults_ = -1, pagemap_ = -1;  // file descriptors
  int process_ = 0;                 // in a forked child, the descriptors still refer to its parent's memory
};

}  // namespace tt::runtime
