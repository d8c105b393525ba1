#include "tt/runtime/fingerprint.h"

#include <ATen/core/Tensor.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>

#include "values.h"
#include "write_tracker.h"

namespace tt::runtime {

namespace {

constexpr size_t kLine = 64;          // bytes of a cache line; reading all of it takes the time of one byte
constexpr size_t kChunk = 2 * kLine;  // bytes that a quick look reads in one place
constexpr size_t kPhases = 256;  // a quick look reads one chunk of each group of this many, which is 32 KiB
constexpr size_t kSmall = 64 << 10;  // memory of at most this many bytes is read completely at each call
constexpr uint64_t kOdd =
    0x9E3779B97F4A7C15;  // 2^64 divided by the golden ratio: its multiples are well spread

// A hash of lines. Each step is a bijection of the lane, so a single changed word always changes the hash.
// The rotation moves the highest bits, such as signs, down. Multiplication alone would only move them out.
struct Hash {
  std::array<uint64_t, kLine / sizeof(uint64_t)> lanes{};

  void add(const char* line) {
    for (size_t i = 0; i < lanes.size(); ++i) {
      uint64_t word;
      std::memcpy(&word, line + i * sizeof word, sizeof word);
      lanes[i] = std::rotl(lanes[i] ^ word, 29) * kOdd;
    }
  }
  void add(const char* begin, size_t bytes) {
    for (; bytes >= kLine; begin += kLine, bytes -= kLine) add(begin);
    if (bytes == 0) return;
    char line[kLine] = {};
    std::memcpy(line, begin, bytes);
    add(line);
  }
  uint64_t digest() const {
    uint64_t all = 0;
    for (uint64_t lane : lanes) all = std::rotl(all ^ lane, 29) * kOdd;
    return all;
  }
};

// The chunk of a group that a phase reads. It differs between groups like a random number. Otherwise a column
// of a matrix could be missed in many phases, because its elements have equal distances. A single
// multiplication would leave a pattern, and columns with some distances would be missed more often.
size_t chunk_of(size_t group, size_t phase) {
  const uint64_t mixed = group * kOdd;
  return (phase + ((mixed ^ mixed >> 32) * kOdd >> 32)) % kPhases;
}

struct Span {
  const char* begin;
  size_t bytes;
};

// The memory from the first to the last element.
Span span_of(const HostBuffer& memory) {
  const at::Tensor view = view_of(memory);
  return {static_cast<const char*>(memory.data), view.storage().nbytes()};
}

}  // namespace

struct Fingerprint::Impl {
  explicit Impl(Span span) {
    const auto first = reinterpret_cast<uint64_t>(span.begin), size = static_cast<uint64_t>(getpagesize());
    head = tail = span;
    if (span.bytes <= kSmall) {
      tail.bytes = 0;
    } else {
      pages = {(first + size - 1) / size * size, (first + span.bytes) / size * size};
      head.bytes = pages.begin - first;
      tail = {reinterpret_cast<const char*>(pages.end), first + span.bytes - pages.end};
    }
    ends = hash_ends();
    phases = hash_pages();
  }
  ~Impl() {
    if (watched) stop_watching();
  }

  uint64_t hash_ends() const {
    Hash hash;
    hash.add(head.begin, head.bytes);
    hash.add(tail.begin, tail.bytes);
    return hash.digest();
  }

  size_t chunks() const { return (pages.end - pages.begin) / kChunk; }
  size_t groups() const { return (chunks() + kPhases - 1) / kPhases; }

  // The memory of a group that a phase reads. It is nullptr if the pages end before it, which is possible in
  // the last group.
  const char* chunk(size_t group, size_t phase) const {
    const size_t index = group * kPhases + chunk_of(group, phase);
    return index < chunks() ? reinterpret_cast<const char*>(pages.begin) + index * kChunk : nullptr;
  }

  std::vector<uint64_t> hash_pages() const {
    std::array<Hash, kPhases> hashes;
    for (size_t group = 0; group < groups(); ++group)
      for (size_t phase = 0; phase < kPhases; ++phase)
        if (const char* found = chunk(group, phase)) hashes[phase].add(found, kChunk);
    std::vector<uint64_t> digests;
    for (const Hash& hash : hashes) digests.push_back(hash.digest());
    return digests;
  }

  uint64_t hash_phase(size_t phase) const {
    constexpr size_t kAhead = 16;  // groups that are prefetched, to hide the latency of memory
    Hash hash;
    for (size_t group = 0; group < groups(); ++group) {
      if (const char* later = chunk(group + kAhead, phase))
        for (size_t i = 0; i < kChunk; i += kLine) __builtin_prefetch(later + i);
      if (const char* found = chunk(group, phase)) hash.add(found, kChunk);
    }
    return hash.digest();
  }

  bool same_pages(bool whole) {
    if (!whole && !watched) {
      // First look at few chunks: a loop that changes all weights at each step should not pay for watching
      // them.
      if (!same_chunks()) return false;
      if (!begin_to_watch()) return true;
    }
    const auto now = watched ? WriteTracker::instance().writes(pages) : std::nullopt;
    if (watched && !now) stop_watching();
    if (now && now == writes && !whole) return true;
    // A write during this reading counts as later than the call. The next call finds it.
    if (hash_pages() != phases) return false;
    writes = now;
    return true;
  }

  bool same_chunks() {
    phase = (phase + 1) % kPhases;
    return hash_phase(phase) == phases[phase];
  }

  bool begin_to_watch() {
    watched = !unwatchable && WriteTracker::instance().watch(pages);
    unwatchable = !watched;
    return watched;
  }

  void stop_watching() {
    WriteTracker::instance().forget(pages);
    watched = false;
  }

  std::mutex mutex;
  Span head, tail;  // the bytes before and after the whole pages
  Pages pages;
  uint64_t ends = 0;
  std::vector<uint64_t> phases;  // a hash per phase
  size_t phase = 0;
  std::optional<uint64_t> writes;  // the tracker's number when the pages were last compared
  bool watched = false, unwatchable = false;
};

Fingerprint::Fingerprint(const HostBuffer& memory) : impl_(std::make_shared<Impl>(span_of(memory))) {}

bool Fingerprint::same(bool whole) {
  std::lock_guard lock(impl_->mutex);
  return impl_->hash_ends() == impl_->ends && (impl_->groups() == 0 || impl_->same_pages(whole));
}

bool Fingerprint::use_write_tracking(bool use) { return WriteTracker::instance().use(use); }

}  // namespace tt::runtime
