// The only exception type of the runtime. Its kind names the class of tt_torch.errors that Python raises.
#pragma once

#include <stdexcept>
#include <string>

#include "tt/runtime/export.h"

namespace tt::runtime {

enum class ErrorKind {
  BinaryFormat,       // the bytes are truncated, damaged or of another format
  Schema,             // there is no wire table for the schema hash
  UnsupportedBinary,  // the binary uses ops or types without a kernel
  InputCount,
  InputShape,
  InputDtype,
  Device,          // a device cannot be opened, or was used after it was closed
  DeviceMemory,    // DRAM or L1 is exhausted
  Kernel,          // an op failed while running
  Busy,            // an executable was called from inside its own callback
  Package,         // a package is damaged, foreign or newer, or it needs Python
  Argument,        // a named argument is missing, unknown, or shares memory that the model writes to
  Inexact,         // the device would not compute the integers of this call exactly
  KernelMissing,   // a program has an op whose kernel is not registered in this process
  ReleasedWeight,  // a program needs a weight whose memory was given up
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
