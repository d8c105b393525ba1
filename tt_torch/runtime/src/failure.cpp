#include "failure.h"

#include <c10/util/Exception.h>

#include <new>
#include <stdexcept>
#include <vector>

#include "tt/runtime/error.h"

namespace tt::runtime {

namespace {

constexpr size_t kLongest = 200;  // characters that are kept of a location in an unknown form

struct SourceLine {
  std::string_view path, line;
};

// All `"path":line` in the text, in order.
std::vector<SourceLine> lines_of(std::string_view text) {
  std::vector<SourceLine> lines;
  for (size_t open = text.find('"'); open != text.npos;) {
    const size_t close = text.find('"', open + 1);
    if (close == text.npos) break;
    const size_t digits = close + 2;
    const size_t end = std::min(text.find_first_not_of("0123456789", digits), text.size());
    if (text.substr(close + 1).starts_with(':') && end > digits)
      lines.push_back({text.substr(open + 1, close - open - 1), text.substr(digits, end - digits)});
    open = text.find('"', close + 1);
  }
  return lines;
}

// The name of the graph node: "add_3" for the text `loc("add_3: aten.add.Tensor"...`, empty for other texts.
std::string_view node_of(std::string_view text) {
  constexpr std::string_view kStart = "loc(\"";
  if (!text.starts_with(kStart)) return {};
  text.remove_prefix(kStart.size());
  const size_t quote = text.find('"'), colon = text.find(": ");
  return colon < quote ? text.substr(0, colon) : std::string_view();
}

// PyTorch's allocator reports exhausted host memory as an ordinary error.
bool is_out_of_memory(std::string_view text) { return text.find("can't allocate memory") != text.npos; }

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  if (!is_out_of_memory(what)) throw Error(ErrorKind::Kernel, where + " failed: " + what);
  throw Error(ErrorKind::DeviceMemory, where + " failed: the host has not enough free memory: " + what);
}

std::string first_line(std::string text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::string short_location(std::string_view location) {
  const std::string node(node_of(location));
  const std::string name = node.empty() ? "" : " (" + node + ")";
  const std::vector<SourceLine> lines = lines_of(location);
  for (const char* inside : {"/site-packages/", "/site-packages/torch/"})
    for (const SourceLine& at : lines)
      if (at.path.find(inside) == at.path.npos)
        return std::string(at.path) + ":" + std::string(at.line) + name;
  if (!node.empty()) return node;
  return std::string(location.substr(0, kLongest)) + (location.size() > kLongest ? "..." : "");
}

void rethrow_as_error(const std::string& where) {
  try {
    throw;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Kernel) throw;
    throw Error(ErrorKind::Kernel, where + " failed: " + error.what());
  } catch (const c10::Error& error) {
    fail(where, first_line(error.what_without_backtrace()));
  } catch (const std::bad_alloc&) {
    fail(where, "can't allocate memory");
  } catch (const std::exception& error) {
    fail(where, first_line(error.what()));
  }
}

}  // namespace tt::runtime
