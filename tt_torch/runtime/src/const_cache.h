// Results of const-eval programs, shared by all executables of the process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tt/runtime/tensor.h"

namespace tt::runtime {

struct ConstKey {
  uint64_t device;
  std::string program_hash;
  std::vector<uint64_t> versions;  // the versions of the input tensors
  auto operator<=>(const ConstKey&) const = default;
};

using ConstResults = std::shared_ptr<const std::vector<Tensor>>;

class ConstCache {
 public:
  static ConstCache& instance();
  ConstResults find(const ConstKey& key);
  void store(const ConstKey& key, ConstResults results);
  bool depends_on(uint64_t version);  // whether there are results that depend on this input tensor
  void drop(uint64_t version);        // when an input tensor dies
  void drop_device(uint64_t device);  // when a device closes, which frees its memory

 private:
  template <typename Predicate>
  void drop_if(Predicate predicate);
  std::mutex mutex_;
  // Results that depend on a tensor are owned by the cache until that tensor dies. Results that depend on
  // none are owned by the executables that use them, and the cache only shares them.
  struct Entry {
    ConstResults owned;
    std::weak_ptr<const std::vector<Tensor>> shared;
  };
  std::map<ConstKey, Entry> entries_;
  std::map<uint64_t, int> watched_;  // input version -> entries that depend on it
};

}  // namespace tt::runtime
