// Runs the steps of a plan.
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/record_function.h>

#include "executable_impl.h"
#include "failure.h"
#include "tt/runtime/error.h"
#include "values.h"

namespace tt::runtime {

namespace {

std::string where(const OpNote& note) {
  return std::string(note.name) + " at " + short_location(note.location);
}

std::span<std::byte> bytes_of(const at::Tensor& value) {
  return {static_cast<std::byte*>(value.data_ptr()), value.nbytes()};
}

// Gives the chips of other processes their values of a slot. The frame of a chip of another process has no
// other values.
void fetch(Slot slot, std::span<Frame> frames, const Gather& gather, const std::string& op) {
  std::vector<at::Tensor> values;
  for (Frame& frame : frames)
    if (frame.here) values.push_back(frame[slot]);
  const at::Tensor own = at::stack(values);
  std::vector<int64_t> shape = own.sizes().vec();
  shape[0] = static_cast<int64_t>(frames.size());
  const at::Tensor all = at::empty(shape, own.options());
  gather(op, bytes_of(own), bytes_of(all));
  for (Frame& frame : frames)
    if (!frame.here) frame[slot] = all[static_cast<int64_t>(frame.chip)];
}

void run_step(const Plan& plan, const Step& step, std::span<Frame> frames, const Gather& gather) {
  if (step.together) {
    const bool crosses = gather && frames.size() > 1;
    if (crosses) fetch(step.exchanged, frames, gather, where(plan.ops[step.op]));
    step.together(frames);
    if (!crosses) return;
    for (Frame& frame : frames)
      if (!frame.here) frame[step.exchanged].reset();
    return;
  }
  for (Frame& frame : frames)
    if (frame.here) step.run(frame);
}

// Runs the steps. PyTorch's profiler shows the steps of one op as one event. `observe` is called after each
// step. An error of a step names the op; an exception of `observe` passes unchanged. The chips run in lock
// step.
template <typename Observe>
void run_steps(const Plan& plan, std::span<Frame> frames, const Gather& gather, Observe observe) {
  const auto end = plan.steps.end();
  for (auto step = plan.steps.begin(); step != end;) {
    const int op = step->op;
    const OpNote& note = plan.ops[op];
    at::RecordFunction event(at::RecordScope::FUNCTION);
    if (event.isActive()) event.before(recorded_name(note.name));
    for (; step != end && step->op == op; ++step) {
      guarded([&] { run_step(plan, *step, frames, gather); }, [&] { return where(note); });
      observe(*step);
    }
  }
}

// Runs the steps without `observe`. Without a profiler, there is one exception handler around all steps,
// which is faster.
void run_steps(const Plan& plan, std::span<Frame> frames, const Gather& gather) {
  if (at::hasCallbacks()) return run_steps(plan, frames, gather, [](const Step&) {});
  const Step* step = plan.steps.data();
  const Step* const end = step + plan.steps.size();
  guarded(
      [&] {
        for (; step != end; ++step) run_step(plan, *step, frames, gather);
      },
      [&] { return where(plan.ops[step->op]); });
}

// The value for a callback: contiguous, and in a type that host buffers can have.
at::Tensor readable(const at::Tensor& value, DataType dtype) {
  const at::Tensor plain = value.is_mkldnn() ? value.to_dense() : value;
  return plain.to(host_type(is_block_float(dtype) ? DataType::BFloat16 : dtype)).contiguous();
}

}  // namespace

std::string recorded_name(std::string_view name) { return "tt::" + std::string(name); }

Frame make_frame(const Plan& plan, size_t number) {
  const Plan::Memory& memory = plan.memories[number];
  Frame frame;
  frame.values.resize(plan.values.size());
  frame.arena = memory.arena.unsafeGetStorageImpl();
  for (const auto& [slot, tensor] : memory.fixed) frame[slot] = tensor;
  return frame;
}

std::vector<at::Tensor> run_constant(const Plan& plan, const std::vector<at::Tensor>& inputs) {
  at::RecordFunction event(at::RecordScope::FUNCTION);
  if (event.isActive()) event.before(recorded_name(plan.program));
  Frame frame = make_frame(plan);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Slot slot = plan.inputs[i];
    frame[slot] = plan.values[slot].written ? inputs[i].clone() : inputs[i];
  }
  run_steps(plan, {&frame, 1}, {});
  std::vector<at::Tensor> results;
  for (Slot slot : plan.outputs) {
    at::Tensor value = frame[slot];
    if (!value.is_mkldnn()) value = value.contiguous();
    results.push_back(std::move(value));
  }
  return results;
}

// The callback sees the values of the first chip of this process.
void Executable::Impl::report(const Step& step) {
  const OpNote& note = plan->ops[step.op];
  // An op that updates a tensor in place has no outputs. It shows this tensor.
  const std::vector<Slot> outputs = note.outputs.empty() ? std::vector{step.out} : note.outputs;
  if (step.out < 0 || outputs.back() != step.out) return;
  OpEvent event{std::string(note.name),
                std::string(note.location),
                std::string(note.debug_info),
                std::string(note.program),
                {}};
  std::vector<at::Tensor> shown;
  for (Slot slot : outputs) {
    const DataType dtype = plan->values[slot].spec.dtype;
    shown.push_back(
        guarded([&] { return readable(own_frame(0)[slot], dtype); }, [&] { return where(note); }));
    const at::Tensor& value = shown.back();
    event.outputs.push_back({value.data_ptr(), value.sizes().vec(), value.strides().vec(),
                             is_block_float(dtype) ? DataType::BFloat16 : dtype});
  }
  callback(event);
}

void Executable::Impl::execute() {
  const Gather& gather = device.options().gather;
  if (!callback) return run_steps(*plan, frames, gather);
  run_steps(*plan, frames, gather, [&](const Step& step) { report(step); });
}

}  // namespace tt::runtime
