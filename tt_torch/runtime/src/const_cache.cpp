#include "const_cache.h"

#include <algorithm>

namespace tt::runtime {

ConstCache& ConstCache::instance() {
  // The cache is never destroyed: tensors that die while the process ends still ask it to drop their entries.
  static auto* cache = new ConstCache;
  return *cache;
}

ConstResults ConstCache::find(const ConstKey& key) {
  std::lock_guard lock(mutex_);
  const auto it = entries_.find(key);
  return it == entries_.end() ? nullptr : it->second.shared.lock();
}

void ConstCache::store(const ConstKey& key, ConstResults results) {
  // The replaced results may own the last reference to tensors whose destructors call drop(). So `entry`
  // takes them over, and they die after the lock is released.
  Entry entry{key.versions.empty() ? nullptr : results, results};
  std::lock_guard lock(mutex_);
  const auto [it, added] = entries_.try_emplace(key);
  std::swap(it->second, entry);
  if (added)
    for (uint64_t version : key.versions) ++watched_[version];
}

bool ConstCache::depends_on(uint64_t version) {
  std::lock_guard lock(mutex_);
  return watched_.contains(version);
}

template <typename Predicate>
void ConstCache::drop_if(Predicate predicate) {
  // The destructors of dropped tensors call drop() again. So the tensors die after the lock is released.
  std::vector<ConstResults> dying;
  std::lock_guard lock(mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    if (!predicate(it->first)) {
      ++it;
      continue;
    }
    for (uint64_t version : it->first.versions)
      if (--watched_[version] == 0) watched_.erase(version);
    dying.push_back(std::move(it->second.owned));
    it = entries_.erase(it);
  }
}

void ConstCache::drop(uint64_t version) {
  {
    std::lock_guard lock(mutex_);
    if (!watched_.contains(version)) return;
  }
  drop_if([&](const ConstKey& key) {
    return std::find(key.versions.begin(), key.versions.end(), version) != key.versions.end();
  });
}

void ConstCache::drop_device(uint64_t device) {
  drop_if([&](const ConstKey& key) { return key.device == device; });
}

}  // namespace tt::runtime
