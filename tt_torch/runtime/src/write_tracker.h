// Asks the kernel which pages were written to.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace tt::runtime {

// Whole pages: addresses of the first byte and behind the last one.
struct Pages {
  uint64_t begin = 0, end = 0;
  bool operator==(const Pages&) const = default;
};

// userfaultfd with asynchronous write protection, in Linux since 6.7: the kernel itself lifts the protection
// of a page at the first write, and an ioctl of /proc/self/pagemap finds such pages and protects them again.
class WriteTracker {
 public:
  static WriteTracker& instance();

  // Begins to watch pages. False where the kernel does not offer that, or where other processes share the
  // pages.
  bool watch(Pages pages);
  void forget(Pages pages);

  // A number that grows when any watched page was written to, these ones up to now; nullopt if these pages
  // are not watched any more. It counts for all pages together: to find a write clears its mark, and ranges
  // may overlap.
  std::optional<uint64_t> writes(Pages pages);

  bool use(bool use);  // whether it is now ready

 private:
  WriteTracker();
  bool ready() const;
  std::optional<bool> scan(Pages pages, uint64_t category, uint64_t flags) const;
  std::optional<bool> take_written(Pages pages) const;
  bool overlaps(Pages pages) const;

  std::mutex mutex_;
  std::vector<Pages> watched_;  // a range stands here once per `watch`
  uint64_t writes_ = 0;
  bool use_ = true;
  int faults_ = -1, pagemap_ = -1;  // file descriptors
  int process_ = 0;                 // a forked child inherits descriptors that mean its parent's memory
};

}  // namespace tt::runtime
