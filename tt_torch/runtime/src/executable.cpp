#include "tt/runtime/executable.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <set>

#include "aten_only.h"
#include "builder.h"
#include "executable_impl.h"
#include "failure.h"
#include "tt/runtime/error.h"
#include "values.h"

namespace tt::runtime {

namespace {

// The turn of one call. Threads wait for each other. A call from inside the executable's own callback would
// wait for itself, so it is an error.
class Turn {
 public:
  explicit Turn(Executable::Impl& impl) : impl_(impl) {
    if (impl.inside_own_run())
      throw Error(ErrorKind::Busy, "program " + impl.plan->program +
                                       " was called from inside its own callback; use another Executable of "
                                       "this program, or call it after this run");
    lock_ = std::unique_lock(impl.mutex);
    impl.runner = std::this_thread::get_id();
  }
  ~Turn() { impl_.runner = std::thread::id(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Executable::Impl& impl_;
  std::unique_lock<std::mutex> lock_;
};

// A program for several chips needs a device with this mesh. A program for one chip runs on the first chip.
void require_mesh(const Program& program, const Device& device) {
  const auto& shape = device.options().mesh_shape;
  if (program.mesh.volume() == 1 || program.mesh == Mesh{shape[0], shape[1]}) return;
  throw Error(ErrorKind::Device, "program " + std::string(program.name) + " is for a mesh of " +
                                     describe({program.mesh.rows, program.mesh.columns}) +
                                     " chips, and the device is a mesh of " + describe(shape) +
                                     "; open one with the program's mesh_shape");
}

}  // namespace

Executable::Impl::Impl(Binary b, size_t p, Device d)
    : binary(std::move(b)), device(std::move(d)), program(p) {
  replan();
}

PlanOptions Executable::Impl::options() const {
  const DeviceOptions& opened = device.options();
  return {.arena = true,
          .fuse = !callback && !opened.exact,
          .host_code = opened.allow_host_code,
          .exact = opened.exact};
}

void Executable::Impl::replan() {
  AtenOnly guard;
  plan = guarded([&] { return make_plan(*binary.impl(), program, options()); },
                 [&] { return "planning program " + binary.programs()[program].name; });
  frames.clear();
  laid_out = false;
  generation = ~uint64_t{0};
}

void Executable::Impl::lay_out_once() {
  if (laid_out) return;
  lay_out(*plan, options(), chips());
  const size_t first = first_chip(), all = static_cast<size_t>(plan->mesh.volume());
  for (size_t chip = 0; chip < all; ++chip) {
    const bool here = chip >= first && chip < first + chips();
    Frame frame = here ? make_frame(*plan, chip - first) : Frame{};
    frame.values.resize(plan->values.size());
    frame.chip = chip;
    frame.here = here;
    frames.push_back(std::move(frame));
  }
  laid_out = true;
}

size_t Executable::Impl::chips() const {
  const int64_t own = device.options().own_chips, all = plan->mesh.volume();
  return static_cast<size_t>(all > 1 && own ? own : all);
}

// A program for one chip runs on the first chip of each process.
size_t Executable::Impl::first_chip() const {
  return static_cast<size_t>(plan->mesh.volume() > 1 ? device.options().first_chip : 0);
}

std::string Executable::Impl::per_chip() const {
  return chips() == 1 ? "" : " of " + std::to_string(chips()) + " chips";
}

std::string Executable::Impl::on_chip(size_t chip) const {
  return chips() == 1 ? "" : " of chip " + std::to_string(chip);
}

void Executable::Impl::check_inputs(std::span<const Input> inputs) const {
  const auto& specs = binary.programs()[program].inputs;
  if (inputs.size() != specs.size() * chips())
    throw Error(ErrorKind::InputCount, "program " + plan->program + " takes " +
                                           std::to_string(specs.size() * chips()) + " inputs" + per_chip() +
                                           ", got " + std::to_string(inputs.size()));
  for (size_t given = 0; given < inputs.size(); ++given) {
    const size_t i = given % specs.size();
    const auto who = [&] { return "input " + std::to_string(i) + on_chip(given / specs.size()) + ": got "; };
    if (const auto* tensor = std::get_if<Tensor>(&inputs[given])) {
      const TensorSpec& got = tensor->spec();
      if (got.shape != specs[i].shape || got.dtype != specs[i].dtype)
        throw Error(ErrorKind::InputShape,
                    who() + "resident " + describe(got) + ", expected " + describe(specs[i]));
      continue;
    }
    const HostBuffer& got = std::get<HostBuffer>(inputs[given]);
    if (got.shape != specs[i].shape)
      throw Error(ErrorKind::InputShape,
                  who() + "shape " + describe(got.shape) + ", expected " + describe(specs[i].shape));
    if (!converts(got.dtype, specs[i].dtype))
      throw Error(ErrorKind::InputDtype,
                  who() + name(got.dtype) + ", expected " + accepted_types(specs[i].dtype));
  }
}

void Executable::Impl::check_outputs(std::span<const HostBuffer> outputs) const {
  const size_t count = plan->outputs.size();
  if (outputs.size() != count * chips())
    throw Error(ErrorKind::InputCount, "program " + plan->program + " has " +
                                           std::to_string(count * chips()) + " outputs" + per_chip() +
                                           ", got memory for " + std::to_string(outputs.size()));
  for (size_t given = 0; given < outputs.size(); ++given) {
    if (outputs[given].unwanted) continue;
    const auto& shape = plan->values[plan->outputs[given % count]].spec.shape;
    if (outputs[given].shape != shape)
      throw Error(ErrorKind::InputShape, "output " + std::to_string(given % count) + on_chip(given / count) +
                                             ": got memory of shape " + describe(outputs[given].shape) +
                                             ", expected " + describe(shape));
  }
}

void Executable::Impl::bind_value(Frame& frame, Slot slot, Tensor::Impl* handle) {
  const auto& packing = plan->packings[slot];
  frame[slot] = packing ? handle->packed(*packing) : handle->plain();
  // A resident input is the caller's memory, or a constant that other programs share. So the program writes
  // to a copy.
  if (plan->values[slot].written) frame[slot] = frame[slot].clone();
}

void Executable::Impl::bind_input(Frame& frame, size_t number, const Input& input, Handles& handles) {
  const Slot slot = plan->inputs[number];
  const Value& value = plan->values[slot];
  if (const auto* tensor = std::get_if<Tensor>(&input)) {
    Tensor::Impl* handle = tensor->impl().get();
    if (handle->state) {
      frame[slot] = handle->plain();
      return;
    }
    handles[slot] = handle;
    if (!value.direct) return;
    handle->direct = true;
    return bind_value(frame, slot, handle);
  }
  const at::Tensor host = view_of(std::get<HostBuffer>(input));
  frame[slot] = to_value(host, value.spec.dtype);
  // The program reads the caller's memory without a copy. A program that writes to the input gets a copy.
  if (value.written && frame[slot].is_alias_of(host)) frame[slot] = frame[slot].clone();
}

void Executable::Impl::bind(std::span<const Input> inputs, std::vector<Handles>& handles) {
  const size_t count = plan->inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i)
    bind_input(own_frame(i / count), i % count, inputs[i], handles[i / count]);
}

// Drops all references to the caller's tensors at the end of a call.
void Executable::Impl::release() {
  for (Frame& frame : frames)
    for (size_t slot = 0; slot < frame.values.size(); ++slot)
      if (plan->values[slot].origin == Origin::Bound) frame.values[slot].reset();
}

// Simulates the device memory of a run. This is done again only if the allocations on the device have
// changed. All chips have the same allocations, so only the allocations of the first chip are counted.
void Executable::Impl::account(std::span<const Input> inputs) {
  inputs = inputs.first(plan->inputs.size());
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

// Writes the results. The destination of a result may be the memory of a state, which another result may
// still share. That other result gets a copy before the first write.
void Executable::Impl::deliver(std::span<const Input> inputs, std::span<const HostBuffer> outputs) {
  std::set<const void*> states;
  for (const Input& input : inputs)
    if (const auto* tensor = std::get_if<Tensor>(&input); tensor && tensor->impl()->state)
      states.insert(tensor->impl()->plain().storage().data());
  std::vector<at::Tensor> values;
  const size_t count = plan->outputs.size();
  for (size_t i = 0; i < outputs.size(); ++i) {
    at::Tensor value = own_frame(i / count)[plan->outputs[i % count]];
    const bool shares = !states.empty() && !value.is_mkldnn() && states.contains(value.storage().data());
    const bool in_place = shares && value.const_data_ptr() == outputs[i].data && value.is_contiguous();
    values.push_back(shares && !in_place ? value.clone() : std::move(value));
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].unwanted) copy_out(values[i], outputs[i]);
}

void Executable::Impl::run(std::span<const Input> inputs, std::span<const HostBuffer> outputs) {
  AtenOnly guard;
  at::RecordFunction event(at::RecordScope::FUNCTION);
  if (event.isActive()) event.before(recorded_name(plan->program));
  device.impl()->require_open();
  check_inputs(inputs);
  check_outputs(outputs);
  std::vector<Handles> handles(chips(), Handles(plan->values.size()));
  std::vector<ConstResults> alive;
  try {
    guarded(
        [&] {
          account(inputs);  // first, so that nothing large is allocated for a run that does not fit
          lay_out_once();
          bind(inputs, handles);
        },
        [&] { return "preparing program " + plan->program; });
    bind_constants(handles, alive);
    account(inputs);
    execute();
    guarded([&] { deliver(inputs, outputs); },
            [&] { return "copying the results of program " + plan->program; });
  } catch (...) {
    replan();  // a failed step may leave buffers in any state
    throw;
  }
  release();
}

Executable::Executable(const Binary& binary, size_t program, const Device& device) {
  device.impl()->require_open();
  if (program >= binary.programs().size())
    throw Error(ErrorKind::BinaryFormat, "the binary has no program " + std::to_string(program));
  require_mesh(program_at(*binary.impl(), program), device);
  impl_ = std::make_shared<Impl>(binary, program, device);
}

void Executable::run(std::span<const Input> inputs, std::span<const HostBuffer> outputs) {
  const std::shared_ptr<Impl> impl = impl_;  // a callback may drop all other references
  Turn turn(*impl);
  const auto adopt = [&] {
    if (!impl->next_callback) return;
    impl->callback = *std::exchange(impl->next_callback, std::nullopt);
    impl->replan();
  };
  try {
    impl->run(inputs, outputs);
  } catch (...) {
    adopt();
    throw;
  }
  adopt();
}

void Executable::set_callback(OpCallback callback) {
  if (impl_->inside_own_run()) {
    impl_->next_callback = std::move(callback);
    return;
  }
  std::lock_guard lock(impl_->mutex);
  impl_->callback.swap(callback);
  impl_->replan();
}

const ProgramInfo& Executable::info() const { return impl_->binary.programs()[impl_->program]; }

ProgramMemory Executable::memory() const {
  // Inside a run these values do not change, and this thread holds the lock already.
  std::unique_lock<std::mutex> lock;
  if (!impl_->inside_own_run()) lock = std::unique_lock(impl_->mutex);
  return {impl_->peaks.dram, impl_->peaks.l1, impl_->plan->arena_bytes};
}

}  // namespace tt::runtime
