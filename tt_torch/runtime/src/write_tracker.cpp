#include "write_tracker.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace tt::runtime {

namespace {

// The headers of a distribution may be older than the kernel. These numbers are from Linux 6.7:
// include/uapi/linux/userfaultfd.h and fs.h.
constexpr uint64_t kUserModeOnly = 1, kProtectUnpopulated = 1 << 13, kProtectAsync = 1 << 15;
constexpr uint64_t kProtectMatching = 1 << 0, kRequireAsync = 1 << 1;  // flags of a scan
constexpr uint64_t kWritten = 1 << 1, kFile = 1 << 2;                  // categories of pages

struct Region {
  uint64_t begin, end, categories;
};

struct Scan {
  uint64_t size = 0, flags = 0, begin = 0, end = 0, walk_end = 0, regions = 0, region_count = 0,
           max_pages = 0;
  uint64_t category_inverted = 0, category_mask = 0, category_any_of = 0, return_mask = 0;
};

}  // namespace

WriteTracker& WriteTracker::instance() {
  // Never destroyed: tensors that die while the process ends still call it.
  static auto* tracker = new WriteTracker;
  return *tracker;
}

WriteTracker::WriteTracker() : process_(getpid()) {
  faults_ = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | kUserModeOnly));
  if (faults_ < 0) return;
  uffdio_api api{UFFD_API, kProtectAsync | kProtectUnpopulated, 0};
  if (ioctl(faults_, UFFDIO_API, &api) == 0) pagemap_ = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pagemap_ < 0) {
    close(faults_);
    faults_ = -1;
  }
}

bool WriteTracker::ready() const { return use_ && pagemap_ >= 0 && process_ == getpid(); }

bool WriteTracker::use(bool use) {
  std::lock_guard lock(mutex_);
  use_ = use;
  return ready();
}

bool WriteTracker::overlaps(Pages pages) const {
  return std::any_of(watched_.begin(), watched_.end(),
                     [&](const Pages& other) { return other.begin < pages.end && pages.begin < other.end; });
}

// Whether there are pages of this category; nullopt if the pages cannot be scanned. `flags` may say that
// written pages are protected again.
std::optional<bool> WriteTracker::scan(Pages pages, uint64_t category, uint64_t flags) const {
  std::array<Region, 64> regions;
  bool found = false;
  for (uint64_t begin = pages.begin; begin < pages.end;) {
    Scan scan{.size = sizeof(Scan),
              .flags = flags,
              .begin = begin,
              .end = pages.end,
              .regions = reinterpret_cast<uint64_t>(regions.data()),
              .region_count = regions.size(),
              .category_mask = category,
              .return_mask = category};
    const int count = ioctl(pagemap_, _IOWR('f', 16, Scan), &scan);
    if (count < 0) return std::nullopt;
    found |= count > 0;
    begin = scan.walk_end;
  }
  return found;
}

std::optional<bool> WriteTracker::take_written(Pages pages) const {
  return scan(pages, kWritten, kProtectMatching | kRequireAsync);
}

bool WriteTracker::watch(Pages pages) {
  std::lock_guard lock(mutex_);
  // Another process can write to shared memory. Only the page table of the other process shows such a write.
  if (!ready() || scan(pages, kFile, 0) != false) return false;
  uffdio_register request{{pages.begin, pages.end - pages.begin}, UFFDIO_REGISTER_MODE_WP, 0};
  if (ioctl(faults_, UFFDIO_REGISTER, &request) != 0) return false;
  const std::optional<bool> written = take_written(pages);
  if (!written) return false;
  if (*written && overlaps(pages)) ++writes_;
  watched_.push_back(pages);
  return true;
}

void WriteTracker::forget(Pages pages) {
  std::lock_guard lock(mutex_);
  const auto found = std::find(watched_.begin(), watched_.end(), pages);
  if (found == watched_.end()) return;
  watched_.erase(found);
  if (process_ != getpid() || overlaps(pages)) return;
  uffdio_range range{pages.begin, pages.end - pages.begin};
  ioctl(faults_, UFFDIO_UNREGISTER,
        &range);  // fails if the memory was freed, which has ended the watch as well
}

std::optional<uint64_t> WriteTracker::writes(Pages pages) {
  std::lock_guard lock(mutex_);
  if (!ready()) return std::nullopt;
  const std::optional<bool> written = take_written(pages);
  if (!written) return std::nullopt;
  if (*written) ++writes_;
  return writes_;
}

}  // namespace tt::runtime
