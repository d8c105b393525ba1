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
  std::vector<uint64_t> versions;  // of the inputs
  auto operator<=>(const ConstKey&) const = default;
};

using ConstResults = std::shared_ptr<const std::vector<Tensor>>;

class ConstCache {
 public:
  static ConstCache& instance();
  ConstResults find(const ConstKey& key);
  void store(const ConstKey& key, ConstResults results);
  void drop(uint64_t version);        // an input tensor died
  void drop_device(uint64_t device);  // its memory is gone

 private:
  template <typename Predicate>
  void drop_if(Predicate predicate);
  std::mutex mutex_;
  // Results that depend on no tensor have nothing that ends them; they live as long as an executable
  // holds them, and the cache only shares them.
  struct Entry {
    ConstResults owned;
    std::weak_ptr<const std::vector<Tensor>> shared;
  };
  std::map<ConstKey, Entry> entries_;
  std::map<uint64_t, int> watched_;  // input version -> entries that depend on it
};

}  // namespace tt::runtime
