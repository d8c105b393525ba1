// The execution plan: an array of steps over numbered slots, which is made once from a program.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "binary_impl.h"
#include "const_cache.h"
#include "memory.h"
#include "tensor_impl.h"

namespace tt::runtime {

using Slot = int32_t;

// The values of a program on one chip.
struct Frame {
  std::vector<at::Tensor> values;
  const c10::StorageImpl* arena = nullptr;
  size_t chip = 0;   // its number in the mesh
  bool here = true;  // whether the chip is one of this process; others have values only during an exchange
  std::vector<at::Tensor> further;  // what a step of an op leaves for the next steps of this op on this chip
  at::Tensor& operator[](Slot slot) { return values[static_cast<size_t>(slot)]; }
};

using StepFn = std::function<void(Frame&)>;
using ChipsFn = std::function<void(std::span<Frame>)>;
using ViewFn = std::function<at::Tensor(const at::Tensor&)>;

enum class Origin : uint8_t {
  Bound,   // a program input or const-eval result, which is set before each run
  Buffer,  // a step writes it into memory that the plan owns
  Fresh,   // a step allocates it
  View,    // it shares the memory of another slot
};

struct Value {
  TensorSpec spec;
  Origin origin = Origin::Bound;
  Slot source = -1;      // the slot that a view shares memory with
  bool alias = false;    // the view is the same tensor as its source
  bool written = false;  // a step updates it in place
  int constants = 0;     // the reads by const-eval programs whose results are cached
  bool direct = true;    // not only these programs read it
  // For a value whose shape is not the described one, such as a packed weight: the use that it was prepared
  // for. Only ops that want exactly this form can read it. Empty for all other values.
  std::string form{};
  int first = 0, last = 0;  // the op that defines it, and the last op that reads it or a view of it
};

struct Step {
  StepFn run;     // runs it on one chip; empty for views
  int op = 0;     // index into Plan::ops
  Slot out = -1;  // the slot that it defines
  ViewFn view;    // set only for views
  Slot source = -1;
  ChipsFn together{};   // set for a collective, which runs on all chips at once
  Slot exchanged = -1;  // a collective reads the values of other chips in this slot
};

// What errors, callbacks and profiles show of an op. The texts are views of the binary's bytes.
struct OpNote {
  std::string_view name, location, debug_info, program;
  std::vector<Slot> outputs;
};

// The op `op` allocates or releases the device memory of a slot.
struct MemoryEvent {
  int op;
  Slot slot;
  bool allocate;
};

struct Plan;

// A call of a const-eval program, whose results are cached.
struct ConstCall {
  std::shared_ptr<Plan> plan;
  std::string hash;
  std::vector<Slot> inputs, outputs;
  struct Known {
    std::vector<uint64_t> versions;  // the versions of the inputs at the last evaluation
    std::weak_ptr<const std::vector<Tensor>> results;
    ConstResults kept;  // results that depend on no input
  };
  std::vector<Known> known;  // one per chip
};

struct PlanOptions {
  bool arena = true;  // intermediates lie in one allocation, which every run reuses
  bool fuse = true;   // run a sequence of ops as one kernel if nothing else reads the values between them
  bool host_code = false;  // the binary's machine code for the host may run
  bool exact = false;      // compute as the matrix unit of a chip, bit for bit
};

struct Plan {
  std::string program;
  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<OpNote> ops;
  std::vector<MemoryEvent> events;
  std::vector<ConstCall> constants;
  std::string
      custom;  // the registered kernels that the program calls, with the numbers of their registrations
  std::vector<Slot> inputs, outputs;
  std::vector<std::optional<Packing>> packings;  // the packed form of each slot, if it has one
  Mesh mesh;
  struct Memory {
    std::vector<std::pair<Slot, at::Tensor>> fixed;  // slots that never change between runs
    c10::Storage arena;
  };
  std::vector<Memory> memories;  // one per chip of this process
  int64_t arena_bytes = 0;       // per chip
};

std::shared_ptr<Plan> make_plan(const Binary::Impl& binary, size_t program, const PlanOptions& options);

// Decides which slots share memory and turns views of fixed memory into fixed slots, for `chips` chips.
void lay_out(Plan& plan, const PlanOptions& options, size_t chips);

// The peak bytes of DRAM and L1 while the program runs, including what the device already holds.
// `resident[i]` is true if input i already has an allocation. Throws a DeviceMemory error if the program does
// not fit.
struct Peaks {
  int64_t dram = 0, l1 = 0;
};
Peaks simulate_memory(const Plan& plan, const Device::Impl& device, const std::vector<bool>& resident);

}  // namespace tt::runtime
