// The one exception type of the runtime. Its kind names the class of tt_torch.errors it becomes in Python.
#pragma once

#include <stdexcept>
#include <string>

#include "tt/runtime/export.h"

namespace tt::runtime {

enum class ErrorKind {
  BinaryFormat,       // truncated, damaged or foreign bytes
  Schema,             // a schema hash without a wire table
  UnsupportedBinary,  // ops or types without a kernel
  InputCount,
  InputShape,
  InputDtype,
  Device,        // cannot be opened, or used after close
  DeviceMemory,  // DRAM or L1 exhausted
  Kernel,        // an op failed while running
  Busy,          // an executable was called from inside its own callback
};

class TT_RUNTIME_API Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  const char* class_name() const;  // for example "BinaryFormatError"

 private:
  ErrorKind kind_;
};

}  // namespace tt::runtime
