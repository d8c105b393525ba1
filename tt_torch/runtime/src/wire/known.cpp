// The schemas that this process knows.
#include <mutex>

#include "wire/schema.h"

namespace tt::runtime::wire {

namespace {

struct Known {
  std::mutex mutex;
  std::vector<const Schema*> all;
};

Known& known() {
  static Known& known = *[] {  // never destroyed: binaries may be loaded while the process ends
    auto* made = new Known;
    for (const Schema& schema : embedded_schemas()) made->all.push_back(&schema);
    return made;
  }();
  return known;
}

}  // namespace

std::vector<const Schema*> known_schemas() {
  std::lock_guard lock(known().mutex);
  return known().all;
}

void add_schemas(std::span<const Schema> schemas) {
  std::lock_guard lock(known().mutex);
  for (const Schema& schema : schemas) known().all.push_back(&schema);
}

}  // namespace tt::runtime::wire
