// Const-eval programs. They run when one of their inputs has changed, and their results are bound like
// inputs.
#include <algorithm>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "executable_impl.h"
#include "failure.h"
#include "values.h"

namespace tt::runtime {

// The C library keeps freed memory, and packing leaves gaps that are as large as weights. Without this
// function, a model takes up to 1.4 times the memory of its weights.
static void give_back(size_t freed) {
#ifdef __GLIBC__
  constexpr size_t kLarge = size_t{1} << 20;
  if (freed >= kLarge) malloc_trim(0);
#endif
}

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
bool Executable::Impl::unchanged(const ConstCall& constant, size_t chip, const Handles& handles) const {
  for (size_t i = 0; i < constant.inputs.size(); ++i) {
    const Tensor::Impl* handle = handles[constant.inputs[i]];
    if (!handle || handle->version != constant.known[chip].versions[i]) return false;
  }
  return true;
}

// All chips have the same allocations, so only the allocations of the first chip are counted.
std::vector<Tensor> Executable::Impl::compute(const ConstCall& constant, size_t chip,
                                              const Handles& handles) {
  std::vector<at::Tensor> inputs;
  for (Slot slot : constant.inputs)
    inputs.push_back(handles[slot] ? handles[slot]->once() : own_frame(chip)[slot]);
  std::vector<at::Tensor> values = run_constant(*constant.plan, inputs);
  std::vector<Tensor> results;
  for (size_t i = 0; i < values.size(); ++i) {
    const TensorSpec& spec = plan->values[constant.outputs[i]].spec;
    computed += values[i].nbytes();
    auto impl = std::make_shared<Tensor::Impl>(spec, std::move(values[i]), true);
    if (spec.buffer != BufferType::Host && chip == 0)
      impl->buffer = std::make_unique<DeviceBuffer>(device.impl(), spec, "constant of " + plan->program);
    results.push_back(Tensor(std::move(impl)));
  }
  return results;
}

ConstResults Executable::Impl::evaluate(ConstCall& constant, size_t chip, const Handles& handles) {
  if (constant.inputs.empty()) chip = 0;  // all chips have the same results
  ConstCall::Known& known = constant.known[chip];
  if (auto results = known.results.lock(); results && unchanged(constant, chip, handles)) return results;
  ConstKey key{device.impl()->id, constant.hash, {}};
  for (Slot slot : constant.inputs) key.versions.push_back(handles[slot] ? handles[slot]->version : 0);
  const bool versioned = std::find(key.versions.begin(), key.versions.end(), 0) == key.versions.end();
  ConstResults results = versioned ? ConstCache::instance().find(key) : nullptr;
  if (!results || !fits(constant, *results)) {
    results = std::make_shared<std::vector<Tensor>>(compute(constant, chip, handles));
    if (versioned) ConstCache::instance().store(key, results);
  }
  known.versions = key.versions;
  known.results = results;
  if (key.versions.empty()) known.kept = results;
  return results;
}

void Executable::Impl::bind_constants(std::vector<Handles>& handles, std::vector<ConstResults>& alive) {
  for (ConstCall& constant : plan->constants) {
    const auto where = [&] { return "const-eval program " + constant.plan->program; };
    constant.known.resize(chips());
    for (size_t chip = 0; chip < chips(); ++chip) {
      ConstResults results = guarded([&] { return evaluate(constant, chip, handles[chip]); }, where);
      for (size_t i = 0; i < results->size(); ++i) {
        Tensor::Impl* handle = (*results)[i].impl().get();
        handles[chip][constant.outputs[i]] = handle;
        guarded([&] { bind_value(own_frame(chip), constant.outputs[i], handle); }, where);
      }
      alive.push_back(std::move(results));
    }
    give_back(std::exchange(computed, 0));
  }
}

}  // namespace tt::runtime
