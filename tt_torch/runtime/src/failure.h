// What goes wrong outside of our own checks, as our own errors.
#pragma once

#include <string>
#include <string_view>

namespace tt::runtime {

// The user's line and the name in the captured graph, from the text of an MLIR location: "model.py:12
// (add_3)". A location lists frames from the innermost out: the first one outside of installed packages is
// the user's, and if all are inside, the first one outside of torch itself.
std::string short_location(std::string_view location);

// For a catch block: rethrows the current exception as an Error. Our own errors pass, except that those of
// kernels get `where` in front; an exhausted host is a DeviceMemory error, anything else a Kernel error.
// What is neither a standard exception nor ours (a Python error on its way through) passes untouched.
[[noreturn]] void rethrow_as_error(const std::string& where);

// Runs `work`; `where()` is asked only when something went wrong.
template <typename Work, typename Where>
decltype(auto) guarded(Work work, Where where) {
  try {
    return work();
  } catch (...) {
    rethrow_as_error(where());
  }
}

}  // namespace tt::runtime
