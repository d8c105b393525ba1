// The execution plan: a program turned once into an array of steps over numbered slots.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "binary_impl.h"
#include "const_cache.h"
#include "memory.h"
#include "tensor_impl.h"

namespace tt::runtime {

using Slot = int32_t;

struct Frame {
  std::vector<at::Tensor> values;
  const c10::StorageImpl* arena = nullptr;
  at::Tensor& operator[](Slot slot) { return values[static_cast<size_t>(slot)]; }
};

using StepFn = std::function<void(Frame&)>;
using ViewFn = std::function<at::Tensor(const at::Tensor&)>;

enum class Origin : uint8_t {
  Bound,   // program input or const-eval result: set before each run
  Buffer,  // written by a step into memory that the plan owns
  Fresh,   // made by a step, which allocates
  View,    // shares the memory of another slot
};

struct Value {
  TensorSpec spec;
  Origin origin = Origin::Bound;
  Slot source = -1;      // of a view
  bool alias = false;    // a view that is the very same tensor
  bool written = false;  // some step updates it in place
  // What a value was prepared for whose shape is not the described one (a packed weight). Only ops that want
  // just this form read it; empty for all other values.
  std::string form{};
  int first = 0, last = 0;  // ops that define and last read it (or a view of it)
};

struct Step {
  StepFn run;     // empty for views
  int op = 0;     // index into Plan::ops
  Slot out = -1;  // slot it defines
  ViewFn view;    // set for views
  Slot source = -1;
};

// Its texts are the binary's.
struct OpNote {
  std::string_view name, location, debug_info, program;
  std::vector<Slot> outputs;
};

// Device memory traffic of the straight-line program: slot >= 0 at op `op`.
struct MemoryEvent {
  int op;
  Slot slot;
  bool allocate;
};

struct Plan;

// A memoised call of a const-eval program.
struct ConstCall {
  std::shared_ptr<Plan> plan;
  std::string hash;
  std::vector<Slot> inputs, outputs;
  std::vector<uint64_t> versions;  // of the last run
  std::weak_ptr<const std::vector<Tensor>> results;
  ConstResults kept;  // results that depend on no input
};

struct PlanOptions {
  bool arena = true;       // intermediates live in one allocation that is reused by every run
  bool fuse = true;        // run op sequences as one kernel where nobody looks at the values between
  bool host_code = false;  // machine code in the binary may run
};

struct Plan {
  std::string program;
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<OpNote> ops;
  std::vector<MemoryEvent> events;
  std::vector<ConstCall> constants;
  std::vector<Slot> inputs, outputs;
  std::vector<std::optional<Packing>> packings;    // per slot
  std::vector<std::pair<Slot, at::Tensor>> fixed;  // slots that never change between runs
  int64_t arena_bytes = 0;
  c10::Storage arena;
};

std::shared_ptr<Plan> make_plan(const Binary::Impl& binary, size_t program, const PlanOptions& options,
                                int depth = 0);

// Decides which slots share memory and turns views of fixed memory into fixed slots.
void lay_out(Plan& plan, const PlanOptions& options);

// Peak use per space when the program runs beside what `spaces` already hold. Throws DeviceMemory.
// `resident[i]` says that input i has its own allocation already.
struct Peaks {
  int64_t dram = 0, l1 = 0;
};
Peaks simulate_memory(const Plan& plan, const Device::Impl& device, const std::vector<bool>& resident);

}  // namespace tt::runtime
