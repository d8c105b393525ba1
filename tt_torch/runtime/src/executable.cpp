#include "tt/runtime/executable.h"

#include <algorithm>

#include "aten_only.h"
#include "builder.h"
#include "tt/runtime/error.h"
#include "values.h"

namespace tt::runtime {

namespace {

std::string where(const OpNote& note) { return note.name + " at " + note.location; }

// Runs the steps, naming the op in any error. `observe` sees each step after it ran.
template <typename Observe>
void run_steps(const Plan& plan, Frame& frame, Observe observe) {
  size_t i = 0;
  try {
    for (; i < plan.steps.size(); ++i) {
      plan.steps[i].run(frame);
      observe(plan.steps[i]);
    }
  } catch (const c10::Error& error) {
    throw Error(ErrorKind::Kernel, where(plan.ops[plan.steps[i].op]) + " failed: " + error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::Kernel, where(plan.ops[plan.steps[i].op]) + " failed: the host is out of memory");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Kernel) throw;
    throw Error(ErrorKind::Kernel, where(plan.ops[plan.steps[i].op]) + " failed: " + error.what());
  }
}

void run_steps(const Plan& plan, Frame& frame) {
  run_steps(plan, frame, [](const Step&) {});
}

Frame make_frame(const Plan& plan) {
  Frame frame;
  frame.values.resize(plan.values.size());
  frame.arena = plan.arena.unsafeGetStorageImpl();
  for (const auto& [slot, tensor] : plan.fixed) frame[slot] = tensor;
  return frame;
}

std::vector<at::Tensor> run_constant(const Plan& plan, const std::vector<at::Tensor>& inputs) {
  Frame frame = make_frame(plan);
  for (size_t i = 0; i < inputs.size(); ++i) frame[plan.inputs[i]] = inputs[i];
  run_steps(plan, frame);
  std::vector<at::Tensor> results;
  for (Slot slot : plan.outputs) {
    at::Tensor value = frame[slot];
    if (!value.is_mkldnn()) value = value.contiguous();
    results.push_back(std::move(value));
  }
  return results;
}

}  // namespace

struct Executable::Impl {
  Binary binary;
  Device device;
  size_t program;
  std::shared_ptr<Plan> plan;
  Frame frame;
  bool proven = false;  // one run went through with all results of the described shape
  OpCallback callback;
  Peaks peaks;
  uint64_t generation = ~uint64_t{0};   // of the device when `peaks` was computed
  std::vector<bool> resident;           // inputs, then
  std::mutex mutex;

  Impl(Binary b, size_t p, Device d) : binary(std::move(b)), device(std::move(d)), program(p) { replan(); }

  void replan() {
    AtenOnly guard;
    plan = make_plan(*binary.impl(), program, {.arena = true, .fuse = !callback, .host_code = device.options().allow_host_code});
    frame = make_frame(*plan);
    proven = false;
    generation = ~uint64_t{0};
  }

  void check_inputs(std::span<const Input> inputs) const;
  void bind(std::span<const Input> inputs, std::vector<Tensor::Impl*>& handles);
  void bind_constants(std::vector<Tensor::Impl*>& handles, std::vector<ConstResults>& alive);
  void bind_value(Slot slot, Tensor::Impl* handle);
  bool fits(const ConstCall& constant, const std::vector<Tensor>& results) const;
  ConstResults evaluate(ConstCall& constant, const std::vector<Tensor::Impl*>& handles);
  void account(std::span<const Input> inputs);
  void execute();
  void report(const Step& step);
};

void Executable::Impl::check_inputs(std::span<const Input> inputs) const {
  const auto& specs = binary.programs()[program].inputs;
  if (inputs.size() != specs.size())
    throw Error(ErrorKind::InputCount, "program " + plan->program + " takes " + std::to_string(specs.size()) +
        " inputs, got " + std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (std::holds_alternative<Tensor>(inputs[i])) {
      const TensorSpec& got = std::get<Tensor>(inputs[i]).spec();
      if (got.shape != specs[i].shape || got.dtype != specs[i].dtype)
        throw Error(ErrorKind::InputShape, "input " + std::to_string(i) + ": got resident " + describe(got) +
            ", accepted is " + describe(specs[i]));
      continue;
    }
    const HostBuffer& got = std::get<HostBuffer>(inputs[i]);
    if (got.shape != specs[i].shape)
      throw Error(ErrorKind::InputShape, "input " + std::to_string(i) + ": got shape " + describe(got.shape) +
          ", accepted is " + describe(specs[i].shape));
    if (!converts(got.dtype, specs[i].dtype))
      throw Error(ErrorKind::InputDtype, "input " + std::to_string(i) + ": got " + name(got.dtype) +
          ", accepted is " + accepted_types(specs[i].dtype));
  }
}

void Executable::Impl::bind_value(Slot slot, Tensor::Impl* handle) {
  const auto& packing = plan->packings[slot];
  frame[slot] = packing ? handle->packed(*packing) : handle->plain();
}

void Executable::Impl::bind(std::span<const Input> inputs, std::vector<Tensor::Impl*>& handles) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Slot slot = plan->inputs[i];
    const Value& value = plan->values[slot];
    if (const auto* tensor = std::get_if<Tensor>(&inputs[i])) {
      handles[slot] = tensor->impl().get();
      bind_value(slot, handles[slot]);
      continue;
    }
    const at::Tensor host = view_of(std::get<HostBuffer>(inputs[i]));
    frame[slot] = to_value(host, value.spec.dtype);
    // The caller's memory stands in for the uploaded copy unless the program writes to it.
    if (value.written && frame[slot].is_alias_of(host)) frame[slot] = frame[slot].clone();
  }
}

// Equal hashes promise equal programs; a damaged binary may break the promise.
bool Executable::Impl::fits(const ConstCall& constant, const std::vector<Tensor>& results) const {
  if (results.size() != constant.outputs.size()) return false;
  for (size_t i = 0; i < results.size(); ++i) {
    const TensorSpec& wanted = plan->values[constant.outputs[i]].spec;
    if (results[i].spec().shape != wanted.shape || results[i].spec().dtype != wanted.dtype) return false;
  }
  return true;
}

ConstResults Executable::Impl::evaluate(ConstCall& constant, const std::vector<Tensor::Impl*>& handles) {
  ConstKey key{device.impl()->id, constant.hash, {}};
  for (Slot slot : constant.inputs) key.versions.push_back(handles[slot] ? handles[slot]->version : 0);
  const bool versioned = std::find(key.versions.begin(), key.versions.end(), 0) == key.versions.end();
  if (versioned && key.versions == constant.versions)
    if (auto results = constant.results.lock()) return results;
  ConstResults results = versioned ? ConstCache::instance().find(key) : nullptr;
  if (!results || !fits(constant, *results)) {
    std::vector<at::Tensor> inputs;
    for (Slot slot : constant.inputs) inputs.push_back(handles[slot] ? handles[slot]->plain() : frame[slot]);
    std::vector<at::Tensor> values = run_constant(*constant.plan, inputs);
    auto made = std::make_shared<std::vector<Tensor>>();
    for (size_t i = 0; i < values.size(); ++i) {
      const TensorSpec& spec = plan->values[constant.outputs[i]].spec;
      auto impl = std::make_shared<Tensor::Impl>(spec, std::move(values[i]), true);
      if (spec.buffer != BufferType::Host)
        impl->buffer = std::make_unique<DeviceBuffer>(device.impl(), spec, "constant of " + plan->program);
      made->push_back(Tensor(std::move(impl)));
    }
    results = std::move(made);
    if (versioned) ConstCache::instance().store(key, results);
  }
  constant.versions = key.versions;
  constant.results = results;
  if (key.versions.empty()) constant.kept = results;
  return results;
}

void Executable::Impl::bind_constants(std::vector<Tensor::Impl*>& handles, std::vector<ConstResults>& alive) {
  size_t current = 0;
  try {
    for (; current < plan->constants.size(); ++current) {
      ConstCall& constant = plan->constants[current];
      ConstResults results = evaluate(constant, handles);
      for (size_t i = 0; i < results->size(); ++i) {
        handles[constant.outputs[i]] = (*results)[i].impl().get();
        bind_value(constant.outputs[i], handles[constant.outputs[i]]);
      }
      alive.push_back(std::move(results));
    }
  } catch (const c10::Error& error) {
    throw Error(ErrorKind::Kernel, "a constant of " + plan->program + ": " + error.what_without_backtrace());
  }
}

// Device memory of a run: computed when what is resident on the device has changed.
void Executable::Impl::account(std::span<const Input> inputs) {
  std::vector<bool> now(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) now[i] = std::holds_alternative<Tensor>(inputs[i]);
  Device::Impl& impl = *device.impl();
  if (generation == impl.generation && now == resident) return;
  std::lock_guard lock(impl.mutex);
  impl.require_open();
  peaks = simulate_memory(*plan, impl, now);
  impl.spaces[0].peak = std::max(impl.spaces[0].peak, peaks.dram / impl.spaces[0].banks);
  impl.spaces[1].peak = std::max(impl.spaces[1].peak, peaks.l1 / impl.spaces[1].banks);
  generation = impl.generation;
  resident = std::move(now);
}

void Executable::Impl::report(const Step& step) {
  const OpNote& note = plan->ops[step.op];
  const bool last = step.out >= 0 && !note.outputs.empty() && note.outputs.back() == step.out;
  if (!last) return;
  OpEvent event{note.name, note.location, note.debug_info, note.program, {}};
  std::vector<at::Tensor> readable;
  for (Slot slot : note.outputs) {
    at::Tensor value = frame[slot].is_mkldnn() ? frame[slot].to_dense() : frame[slot];
    const DataType dtype = plan->values[slot].spec.dtype;
    const bool widened = dtype == DataType::UInt32 || dtype == DataType::UInt16;
    readable.push_back(value.to(host_type(is_block_float(dtype) ? DataType::BFloat16 : dtype)).contiguous());
    const at::Tensor& shown = readable.back();
    event.outputs.push_back({shown.data_ptr(), shown.sizes().vec(), shown.strides().vec(),
                             widened || !is_block_float(dtype) ? dtype : DataType::BFloat16});
  }
  callback(event);
}

void Executable::Impl::execute() {
  if (!callback && proven) return run_steps(*plan, frame);
  run_steps(*plan, frame, [&](const Step& step) {
    if (step.out >= 0 && plan->values[step.out].origin == Origin::Buffer &&
        frame[step.out].sizes() != at::IntArrayRef(plan->values[step.out].spec.shape))
      throw Error(ErrorKind::Kernel, "the result has shape " + describe(frame[step.out].sizes().vec()) +
          ", the program describes it as " + describe(plan->values[step.out].spec.shape));
    if (callback) report(step);
  });
  proven = true;
}

Executable::Executable(const Binary& binary, size_t program, const Device& device) {
  device.impl()->require_open();
  if (program >= binary.programs().size())
    throw Error(ErrorKind::BinaryFormat, "there is no program " + std::to_string(program));
  impl_ = std::make_shared<Impl>(binary, program, device);
}

void Executable::run(std::span<const Input> inputs, std::span<const HostBuffer> outputs) {
  Impl& impl = *impl_;
  std::lock_guard lock(impl.mutex);
  AtenOnly guard;
  impl.device.impl()->require_open();
  impl.check_inputs(inputs);
  if (outputs.size() != impl.plan->outputs.size())
    throw Error(ErrorKind::InputCount, "program " + impl.plan->program + " has " +
        std::to_string(impl.plan->outputs.size()) + " outputs, got memory for " + std::to_string(outputs.size()));
  std::vector<Tensor::Impl*> handles(impl.plan->values.size());
  std::vector<ConstResults> alive;
  try {
    impl.account(inputs);  // before anything large is made for it
    impl.bind(inputs, handles);
    impl.bind_constants(handles, alive);
    impl.account(inputs);
    impl.execute();
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Slot slot = impl.plan->outputs[i];
      if (outputs[i].shape != impl.plan->values[slot].spec.shape)
        throw Error(ErrorKind::InputShape, "output " + std::to_string(i) + ": got memory of shape " +
            describe(outputs[i].shape) + ", accepted is " + describe(impl.plan->values[slot].spec.shape));
      copy_out(impl.frame[slot], outputs[i]);
    }
  } catch (const c10::Error& error) {
    impl.replan();
    throw Error(ErrorKind::Kernel, error.what_without_backtrace());
  } catch (...) {
    impl.replan();  // a failed step may have left buffers in any state
    throw;
  }
  for (size_t slot = 0; slot < handles.size(); ++slot)
    if (impl.plan->values[slot].origin == Origin::Bound) impl.frame.values[slot].reset();
}

void Executable::set_callback(OpCallback callback) {
  std::lock_guard lock(impl_->mutex);
  impl_->callback = std::move(callback);
  impl_->replan();
}

const ProgramInfo& Executable::info() const { return impl_->binary.programs()[impl_->program]; }

ProgramMemory Executable::memory() const {
  std::lock_guard lock(impl_->mutex);
  return {impl_->peaks.dram, impl_->peaks.l1, impl_->plan->arena_bytes};
}

}  // namespace tt::runtime
