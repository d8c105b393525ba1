// A package (.ttpkg): a compiled model and its weights in one file, which runs without Python.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tt/runtime/device.h"
#include "tt/runtime/tensor.h"

namespace tt::runtime {

// An argument or a result of a model. A part of a container has the name that it has in Python:
// `batch['ids']`, `result[0]` or `result.logits`.
struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;
  DataType dtype = DataType::Float32;
};

class TT_RUNTIME_API Package {
 public:
  // Maps the file into memory, compares its hashes and plans its programs. Weights are not copied, so the
  // file must not change while the package exists. Throws a Package error for a damaged, foreign or newer
  // file, and for a model that needs Python. It also throws what Binary::load and Executable throw.
  static Package load(const std::string& path, const Device& device);

  // The tensors that a call takes and gives, sorted by name. Arguments that are no tensors are fixed.
  const std::vector<NamedTensor>& inputs() const;
  const std::vector<NamedTensor>& outputs() const;

  // Runs the model on all of its inputs, and writes those results that `outputs` names. Inputs that the model
  // changes are changed; its buffers change in the package, not in the file. Thread-safe: concurrent calls
  // run one after the other. Throws Argument, InputShape and InputDtype errors for tensors of another form,
  // an Inexact error if the device would not compute integers exactly, and what Executable::run throws.
  void run(const std::map<std::string, HostBuffer>& inputs, const std::map<std::string, HostBuffer>& outputs);

  struct Impl;

 private:
  explicit Package(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace tt::runtime
