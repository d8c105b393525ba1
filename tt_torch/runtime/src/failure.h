// Turns exceptions that our own checks did not raise into our own errors.
#pragma once

#include <string>
#include <string_view>

namespace tt::runtime {

// The user's line and the name of the graph node, from the text of an MLIR location: "model.py:12 (add_3)".
// A location lists frames from the innermost outwards. The user's frame is the first one outside of installed
// packages or, if there is none, the first one outside of torch.
std::string short_location(std::string_view location);

// For a catch block: rethrows the current exception as an Error. Our own errors pass unchanged, except that
// Kernel errors get `where` as a prefix. If the host has no memory left, the result is a DeviceMemory error.
// Any other standard exception becomes a Kernel error. Other exceptions, such as a Python error, pass
// unchanged.
[[noreturn]] void rethrow_as_error(const std::string& where);

// Runs `work` and rethrows its exceptions as errors. `where()` is called only if there is an exception.
template <typename Work, typename Where>
decltype(auto) guarded(Work work, Where where) {
  try {
    return work();
  } catch (...) {
    rethrow_as_error(where());
  }
}

}  // namespace tt::runtime
