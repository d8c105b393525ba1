// Places intermediates: in the plan's own memory on the host, and in the emulated device memory.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <climits>

#include "failure.h"
#include "plan.h"
#include "tt/runtime/error.h"
#include "values.h"

namespace tt::runtime {

namespace {

constexpr int64_t kAlignment = 64;

int64_t bytes_of(const Value& value) {
  const auto size = static_cast<int64_t>(c10::elementSize(storage_type(value.spec.dtype)));
  const int64_t bytes = checked_volume(value.spec.shape) * size;
  return std::max<int64_t>(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

// The offsets of values in the arena. Values that are alive at the same op do not overlap. A value that is
// not in the arena has the offset -1.
std::vector<int64_t> assign_offsets(const Plan& plan, int64_t* total) {
  std::vector<int64_t> offsets(plan.values.size(), -1);
  std::vector<std::vector<Slot>> born(plan.ops.size() + 1), dead(plan.ops.size() + 1);
  for (size_t slot = 0; slot < plan.values.size(); ++slot) {
    const Value& value = plan.values[slot];
    if (value.origin != Origin::Buffer) continue;
    born[value.first].push_back(static_cast<Slot>(slot));
    if (value.last != INT_MAX) dead[value.last].push_back(static_cast<Slot>(slot));
  }
  Space space(int64_t{1} << 50, 1);
  int64_t end = 0;
  for (size_t op = 0; op < born.size(); ++op) {
    for (Slot slot : born[op]) {
      const int64_t size = bytes_of(plan.values[slot]);
      offsets[slot] = space.allocate(size).value();
      end = std::max(end, offsets[slot] + size);
    }
    for (Slot slot : dead[op]) space.release(offsets[slot], bytes_of(plan.values[slot]));
  }
  *total = end;
  return offsets;
}

using Fixed = std::vector<at::Tensor>;  // per slot: the value of a chip if it never changes its place

// Gives each chip an arena, in which the values have the same offsets.
void place_buffers(Plan& plan, std::vector<Fixed>& fixed) {
  const std::vector<int64_t> offsets = assign_offsets(plan, &plan.arena_bytes);
  for (size_t chip = 0; chip < fixed.size(); ++chip) {
    const c10::Storage arena = plan.memories[chip].arena = at::empty({plan.arena_bytes}, at::kByte).storage();
    for (size_t slot = 0; slot < plan.values.size(); ++slot) {
      if (offsets[slot] < 0) continue;
      const TensorSpec& spec = plan.values[slot].spec;
      const at::ScalarType type = storage_type(spec.dtype);
      at::Tensor& value = fixed[chip][slot] = at::empty({0}, type);
      value.set_(arena, offsets[slot] / static_cast<int64_t>(c10::elementSize(type)), spec.shape,
                 row_major_strides(spec.shape));
    }
  }
}

// For each op, the values that a step allocates and that no op after it reads.
std::vector<std::vector<Slot>> last_read(const Plan& plan, const Fixed& fixed) {
  std::vector<std::vector<Slot>> dead(plan.ops.size());
  for (size_t slot = 0; slot < plan.values.size(); ++slot) {
    Slot root = static_cast<Slot>(slot);
    while (plan.values[root].source >= 0) root = plan.values[root].source;
    const int last = plan.values[root].last;
    if (plan.values[root].origin == Origin::Fresh && !fixed[slot].defined() && last != INT_MAX)
      dead[last].push_back(static_cast<Slot>(slot));
  }
  return dead;
}

}  // namespace

void lay_out(Plan& plan, const PlanOptions& options, size_t chips) {
  std::vector<Fixed> fixed(chips, Fixed(plan.values.size()));
  plan.memories.resize(chips);
  if (options.arena) place_buffers(plan, fixed);
  std::vector<Step> kept;
  for (Step& step : plan.steps) {
    if (step.view && fixed[0][step.source].defined()) {
      for (Fixed& values : fixed) values[step.out] = step.view(values[step.source]);
      continue;
    }
    if (step.view)
      step.run = [view = step.view, out = step.out, source = step.source](Frame& f) {
        f[out] = view(f[source]);
      };
    kept.push_back(std::move(step));
  }
  const std::vector<std::vector<Slot>> dead = last_read(plan, fixed[0]);
  plan.steps.clear();
  size_t next = 0;
  for (size_t op = 0; op < plan.ops.size(); ++op) {
    for (; next < kept.size() && kept[next].op == static_cast<int>(op); ++next)
      plan.steps.push_back(std::move(kept[next]));
    if (!dead[op].empty())
      plan.steps.push_back({[slots = dead[op]](Frame& f) {
                              for (Slot s : slots) f[s].reset();
                            },
                            static_cast<int>(op), -1, nullptr, -1});
  }
  for (size_t chip = 0; chip < chips; ++chip)
    for (size_t slot = 0; slot < plan.values.size(); ++slot)
      if (fixed[chip][slot].defined())
        plan.memories[chip].fixed.emplace_back(static_cast<Slot>(slot), fixed[chip][slot]);
}

namespace {

std::string label(const Plan& plan, const MemoryEvent& event) {
  const std::string spec = describe(plan.values[event.slot].spec);
  if (event.op < 0) {
    const auto position = std::find(plan.inputs.begin(), plan.inputs.end(), event.slot) - plan.inputs.begin();
    return "input " + std::to_string(position) + " " + spec;
  }
  const OpNote& note = plan.ops[event.op];
  return std::string(note.name) + " " + spec + " at " + short_location(note.location);
}

struct Taken {
  MemoryEvent event;  // its op is -1 for an input
  BufferType space;
  int64_t address, per_bank, total;
};

LiveBuffer described(const Plan& plan, const Taken& taken) {
  return {label(plan, taken.event), taken.space, taken.address, taken.per_bank, taken.total};
}

}  // namespace

Peaks simulate_memory(const Plan& plan, const Device::Impl& device, const std::vector<bool>& resident) {
  Space spaces[3] = {device.spaces[0], device.spaces[1], device.spaces[2]};
  std::map<Slot, Taken> live;
  for (Space& space : spaces) space.peak = space.used;
  const auto take = [&](const MemoryEvent& event) {
    const TensorSpec& spec = plan.values[event.slot].spec;
    if (live.contains(event.slot)) return;
    Space& space = spaces[static_cast<size_t>(spec.buffer)];
    const Footprint size = footprint(spec, space.banks);
    Taken taken{event, spec.buffer, 0, size.per_bank, size.total};
    const auto address = space.allocate(size.per_bank);
    if (!address) {
      std::vector<LiveBuffer> all;
      for (const auto& [key, other] : device.live) all.push_back(other);
      for (const auto& [slot, other] : live) all.push_back(described(plan, other));
      throw_exhausted(described(plan, taken), space, std::move(all));
    }
    taken.address = *address;
    live.emplace(event.slot, taken);
  };
  for (size_t i = 0; i < plan.inputs.size(); ++i)
    if (!resident[i]) take({-1, plan.inputs[i], true});
  for (const MemoryEvent& event : plan.events) {
    if (event.allocate) {
      take(event);
      continue;
    }
    const auto it = live.find(event.slot);
    if (it == live.end()) continue;
    spaces[static_cast<size_t>(it->second.space)].release(it->second.address, it->second.per_bank);
    live.erase(it);
  }
  return {spaces[0].peak * spaces[0].banks, spaces[1].peak * spaces[1].banks};
}

}  // namespace tt::runtime
