// Const-eval programs. They run when one of their inputs has changed, and their results are bound like
// inputs.
#include <algorithm>

#include "executable_impl.h"
#include "failure.h"
#include "values.h"

namespace tt::runtime {

// Whether cached results have the described shapes and types. Programs with equal hashes should be equal, but
// a damaged binary may have the same hash for different programs.
bool Executable::Impl::fits(const ConstCall& constant, const std::vector<Tensor>& results) const {
  if (results.size() != constant.outputs.size()) return false;
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorSpec& wanted = plan->values[constant.outputs[i]].spec;
    if (results[i].spec().shape != wanted.shape || results[i].spec().dtype != wanted.dtype) return false;
  }
  return true;
}

// Whether all inputs are the resident tensors of the last evaluation. There must have been one.
bool Executable::Impl::unchanged(const ConstCall& constant, const Handles& handles) const {
  for (size_t i = 0; i < constant.inputs.size(); ++i) {
    const Tensor::Impl* handle = handles[constant.inputs[i]];
    if (!handle || handle->version != constant.versions[i]) return false;
  }
  return true;
}

std::vector<Tensor> Executable::Impl::compute(const ConstCall& constant, const Handles& handles) {
  std::vector<at::Tensor> inputs;
  for (Slot slot : constant.inputs) inputs.push_back(handles[slot] ? handles[slot]->plain() : frame[slot]);
  std::vector<at::Tensor> values = run_constant(*constant.plan, inputs);
  std::vector<Tensor> results;
  for (size_t i = 0; i < values.size(); ++i) {
    const TensorSpec& spec = plan->values[constant.outputs[i]].spec;
    auto impl = std::make_shared<Tensor::Impl>(spec, std::move(values[i]), true);
    if (spec.buffer != BufferType::Host)
      impl->buffer = std::make_unique<DeviceBuffer>(device.impl(), spec, "constant of " + plan->program);
    results.push_back(Tensor(std::move(impl)));
  }
  return results;
}

ConstResults Executable::Impl::evaluate(ConstCall& constant, const Handles& handles) {
  if (auto results = constant.results.lock(); results && unchanged(constant, handles)) return results;
  ConstKey key{device.impl()->id, constant.hash, {}};
  for (Slot slot : constant.inputs) key.versions.push_back(handles[slot] ? handles[slot]->version : 0);
  const bool versioned = std::find(key.versions.begin(), key.versions.end(), 0) == key.versions.end();
  ConstResults results = versioned ? ConstCache::instance().find(key) : nullptr;
  if (!results || !fits(constant, *results)) {
    results = std::make_shared<std::vector<Tensor>>(compute(constant, handles));
    if (versioned) ConstCache::instance().store(key, results);
  }
  constant.versions = key.versions;
  constant.results = results;
  if (key.versions.empty()) constant.kept = results;
  return results;
}

void Executable::Impl::bind_constants(Handles& handles, std::vector<ConstResults>& alive) {
  alive.reserve(plan->constants.size());
  for (ConstCall& constant : plan->constants) {
    const auto where = [&] { return "const-eval program " + constant.plan->program; };
    ConstResults results = guarded([&] { return evaluate(constant, handles); }, where);
    for (size_t i = 0; i < results->size(); ++i) {
      Tensor::Impl* handle = (*results)[i].impl().get();
      handles[constant.outputs[i]] = handle;
      guarded([&] { bind_value(constant.outputs[i], handle); }, where);
    }
    alive.push_back(std::move(results));
  }
}

}  // namespace tt::runtime
