// Turns the operations of a program into steps.
#include <algorithm>
#include <climits>
#include <set>

#include "builder.h"
#include "failure.h"
#include "recording.h"
#include "values.h"

namespace tt::runtime {

namespace {

constexpr int kMaxDepth = 8;  // depth of calls between programs
// The limit for the ops of a program plus the tensors that they mention, with all calls expanded. If the file
// has more bytes than this, its number of bytes is the limit.
constexpr size_t kMaxExpanded = 1 << 18;

// Throws an UnsupportedBinary error that names all ops of the binary without a kernel.
void require_kernels(const Binary::Impl& binary) {
  std::set<std::string> missing;
  for (const Program& program : binary.programs)
    for (const Operation& op : program.operations)
      if (!find_kernel(op.name)) missing.emplace(op.name);
  if (missing.empty()) return;
  std::string names;
  for (const auto& name : missing) names += (names.empty() ? "" : ", ") + name;
  throw Error(ErrorKind::UnsupportedBinary, "the runtime has no kernel for: " + names);
}

// The numbers of the programs that an op calls.
std::vector<size_t> callees(const Operation& op) {
  std::vector<const char*> fields;
  if (op.name == "LoadCachedOp") fields = {"program_idx"};
  if (op.name == "FuncCallOp") fields = {"program_id"};
  if (op.name == "CaptureOrExecuteTraceOp")
    fields = {"allocate_slots_program_id", "capture_program_id", "execute_program_id"};
  std::vector<size_t> found;
  for (const char* field : fields) found.push_back(static_cast<size_t>(op.record.integer(field)));
  return found;
}

// A program with its calls expanded.
struct Expanded {
  size_t size = 0;  // the number of ops and of the tensors that they mention; 0 while a caller counts it
  int depth = 0;    // the depth of calls below it
};

// Counts the program `index`, which is called at the depth `depth`. Throws a BinaryFormat error if programs
// call each other without end, if calls are too deep, or if the number is too large.
Expanded expanded(const Binary::Impl& binary, size_t index, int depth, std::map<size_t, Expanded>& known) {
  const Program& program = program_at(binary, index);
  const auto [entry, fresh] = known.try_emplace(index);
  Expanded& result = entry->second;
  if (!fresh && result.size == 0)
    throw Error(ErrorKind::BinaryFormat,
                "programs call each other without end: " + std::string(program.name));
  if (depth + result.depth > kMaxDepth)
    throw Error(ErrorKind::BinaryFormat, "calls between programs are more than " + std::to_string(kMaxDepth) +
                                             " deep: " + std::string(program.name));
  if (!fresh) return result;
  const size_t most = std::max(kMaxExpanded, binary.bytes.size());
  size_t size = 1;
  for (const Operation& op : program.operations) {
    size += 1 + op.tensors.size();
    for (const size_t next : callees(op)) {
      const Expanded callee = expanded(binary, next, depth + 1, known);
      result.depth = std::max(result.depth, callee.depth + 1);
      size += callee.size;
    }
    if (size > most)
      throw Error(ErrorKind::BinaryFormat, "program " + std::string(program.name) + " has more than " +
                                               std::to_string(most) +
                                               " ops and tensors when its calls are expanded");
  }
  result.size = size;
  return result;
}

}  // namespace

Slot Planner::new_slot(const TensorSpec& spec) {
  const int now = std::max(0, current());
  plan->values.push_back({.spec = spec, .first = now, .last = now});
  plan->packings.emplace_back();
  names_.push_back(0);
  wants_.push_back(0);
  touches_.push_back(0);
  return static_cast<Slot>(plan->values.size()) - 1;
}

Slot Planner::lookup(uint32_t id, const std::string& who) const {
  const auto it = ids_.find(id);
  if (it == ids_.end())
    throw Error(ErrorKind::BinaryFormat,
                who + " reads tensor " + std::to_string(id) + ", which no input or earlier op defines");
  return it->second;
}

Slot Planner::original(Slot slot) const {
  while (plan->values[slot].alias) slot = plan->values[slot].source;
  return slot;
}

void Planner::touch(Slot slot) {
  ++touches_[original(slot)];
  for (; slot >= 0; slot = plan->values[slot].source)
    plan->values[slot].last = std::max(plan->values[slot].last, current());
}

void Planner::forget(uint32_t id) {
  const auto it = ids_.find(id);
  if (it == ids_.end()) return;
  plan->events.push_back({current(), it->second, false});
  ids_.erase(it);
}

void Planner::count_readers(const Program& program) {
  readers_.clear();
  for (const Operand& input : program.inputs) readers_[input.id].push_back(0);
  for (size_t i = 0; i < program.operations.size(); ++i) {
    if (program.operations[i].name == "DeallocateOp") continue;
    for (const uint32_t id : program.operations[i].tensors) readers_[id].push_back(i);
  }
  for (const Operand& output : program.outputs) readers_[output.id].push_back(SIZE_MAX);
}

void Planner::program(const Program& program, const std::vector<Slot>* arguments,
                      std::vector<Slot>* results) {
  if (program.mesh.volume() != 1 && program.mesh != plan->mesh)
    throw Error(ErrorKind::BinaryFormat,
                "program " + std::string(program.name) + " is for another mesh than the one that calls it");
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    storage_type(program.inputs[i].spec.dtype);
    const Slot slot = arguments ? (*arguments)[i] : new_slot(program.inputs[i].spec);
    if (!arguments) plan->inputs.push_back(slot);
    define(program.inputs[i].id, slot);
  }
  program_ = &program;
  count_readers(program);
  absorbed_.assign(program.operations.size(), false);
  operations(program);
  for (const Operand& output : program.outputs) {
    const Slot slot = lookup(output.id, "the result list of " + std::string(program.name));
    if (plan->values[slot].spec.shape != output.spec.shape)
      throw Error(ErrorKind::BinaryFormat,
                  "a result of " + std::string(program.name) + " is described with two shapes");
    results->push_back(slot);
  }
}

void Planner::operations(const Program& program) {
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const Operation& op = program.operations[i];
    plan->ops.push_back({op.name, op.location, op.debug_info, program.name, {}});
    // An earlier step computes the result of an absorbed op, but its device memory is allocated here.
    if (absorbed_[i]) {
      const auto ref = op.record.record("out");
      plan->events.push_back({current(), ids_.at(static_cast<uint32_t>(ref->integer("global_id"))), true});
      continue;
    }
    OpBuilder builder(*this, op);
    const auto where = [&] { return std::string(op.name) + " at " + short_location(op.location) + ": "; };
    try {
      find_kernel(op.name)(builder);
    } catch (const Error& error) {
      throw Error(error.kind(), where() + error.what());
    } catch (const c10::Error& error) {
      throw Error(ErrorKind::BinaryFormat, where() + error.what_without_backtrace());
    }
  }
}

std::span<const uint8_t> Planner::library(int64_t id) const {
  // A binary has at most one library per id. A library that a const-eval program calls may be in the main
  // program.
  for (const Program& program : binary.programs)
    for (const auto& [key, image] : program.libraries)
      if (key == id) return image;
  throw Error(
      ErrorKind::BinaryFormat,
      "program " + std::string(program_->name) + " has no host library " + std::to_string(id) +
          ", because the binary was written without machine code; `tt-torch link` compiles and adds it");
}

// Expands a call of a program in place, and returns its results. The callee's tensors get their own slots.
std::vector<Slot> Planner::expand(OpBuilder& op, const Program& callee, const std::vector<Slot>& arguments) {
  op.require(arguments.size() == callee.inputs.size(),
             "the number of inputs is not that of the called program");
  for (size_t i = 0; i < arguments.size(); ++i)
    op.require(op.spec(arguments[i]).shape == callee.inputs[i].spec.shape &&
                   op.spec(arguments[i]).dtype == callee.inputs[i].spec.dtype,
               "an input has another shape or type than in the called program");
  Planner inner(binary, options);
  inner.plan = plan;
  inner.names_ = std::move(names_);
  inner.wants_ = std::move(wants_);
  inner.touches_ = std::move(touches_);
  std::vector<Slot> results;
  inner.program(callee, &arguments, &results);
  names_ = std::move(inner.names_);
  wants_ = std::move(inner.wants_);
  touches_ = std::move(inner.touches_);
  return results;
}

// Defines the outputs of an op whose calls were expanded.
void Planner::give(OpBuilder& op, std::span<const Slot> results) {
  plan->ops.push_back({op.operation().name, op.operation().location, op.operation().debug_info, "", {}});
  const auto refs = op.attributes().records("outputs");
  op.require(refs.size() == results.size(), "the number of results is not that of the called program");
  for (size_t i = 0; i < refs.size(); ++i) {
    op.require(decode_operand(refs[i]).spec.shape == op.spec(results[i]).shape,
               "a result has another shape than in the called program");
    touch(results[i]);
    define(static_cast<uint32_t>(refs[i].integer("global_id")), results[i]);
  }
}

// The operands of a call. Their readers are in the called program; the call itself is not a reader.
std::vector<Slot> Planner::given(OpBuilder& op) {
  std::vector<Slot> slots = op.all_passed("inputs");
  for (const Slot slot : slots) --touches_[original(slot)];
  return slots;
}

void Planner::call(OpBuilder& op, size_t index) {
  give(op, expand(op, program_at(binary, index), given(op)));
}

// Every call does what the later calls do on a device: it writes operands into the recording's tensors, and
// runs the recorded ops once. The results are the last of these tensors. The program that returns the tensors
// takes the first operands on the device. These operands stay where they are. All other operands are written,
// from the host or the device.
void Planner::replay(OpBuilder& op) {
  const Recording recording = recording_of(binary, op.operation());
  const std::vector<Slot> inputs = given(op);
  const auto refs = op.attributes().records("inputs");
  const size_t outputs = op.attributes().records("outputs").size();
  std::vector<Slot> resident, arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool on_device = decode_operand(refs[i]).spec.buffer != BufferType::Host;
    const bool stays = on_device && resident.size() < recording.allocate.inputs.size();
    (stays ? resident : arguments).push_back(inputs[i]);
  }
  // Only a newer schema has this field, which is 0 if it is absent.
  const auto count = static_cast<size_t>(op.attributes().integer("device_resident_input_count"));
  op.require(count == 0 || count == resident.size(),
             "device_resident_input_count is not the number of inputs that stay on the device");
  const std::vector<Slot> tensors = expand(op, recording.allocate, resident);
  op.require(tensors.size() == inputs.size() + outputs,
             "the recording does not have one tensor for each input and result");
  arguments.insert(arguments.end(), tensors.begin(), tensors.end());
  expand(op, recording.steps, arguments);
  give(op, std::span(tensors).last(outputs));
}

static std::shared_ptr<Plan> plan_checked(const Binary::Impl& binary, size_t program, const Mesh& mesh,
                                          const PlanOptions& options);

// Adds a call of a const-eval program. Its results are bound like inputs, before the steps run. If an input
// is not constant, the call is expanded in place instead.
void Planner::load_cached(OpBuilder& op) {
  const auto index = static_cast<size_t>(op.attributes().integer("program_idx"));
  const std::vector<Slot> inputs = op.ins("inputs");
  const auto bound = [&](Slot slot) { return plan->values[slot].origin == Origin::Bound; };
  if (!options.arena || !std::all_of(inputs.begin(), inputs.end(), bound)) return call(op, index);
  const Program& callee = program_at(binary, index);
  op.require(inputs.size() == callee.inputs.size(),
             "the number of inputs is not that of the const-eval program");
  for (size_t i = 0; i < inputs.size(); ++i)
    op.require(op.spec(inputs[i]).shape == callee.inputs[i].spec.shape &&
                   op.spec(inputs[i]).dtype == callee.inputs[i].spec.dtype,
               "an input has another shape or type than in the const-eval program");
  ConstCall constant;
  constant.inputs = inputs;
  constant.hash = op.attributes().text("program_hash");
  constant.plan = plan_checked(
      binary, index, plan->mesh,
      {.arena = false, .fuse = options.fuse, .host_code = options.host_code, .exact = options.exact});
  constant.hash += constant.plan->custom;  // the results depend on these kernels
  op.require(constant.plan->outputs.size() == op.attributes().records("outputs").size(),
             "the number of results is not that of the const-eval program");
  for (const auto& ref : op.attributes().records("outputs")) {
    const Operand result = decode_operand(ref);
    const Value& computed = constant.plan->values[constant.plan->outputs[constant.outputs.size()]];
    op.require(computed.spec.shape == result.spec.shape && computed.spec.dtype == result.spec.dtype,
               "a result has another shape or data type than in the const-eval program");
    const Slot slot = new_slot(result.spec);
    plan->values[slot].form = computed.form;
    constant.hash += "|" + computed.form;  // a damaged file may have equal hashes of different programs
    define(result.id, slot);
    constant.outputs.push_back(slot);
  }
  for (const Slot slot : inputs) ++plan->values[original(slot)].constants;
  plan->constants.push_back(std::move(constant));
}

// The result of a kernel may share memory with its operand, or with another chip. The operand's memory may
// belong to the caller. If a later op writes to the result, the result gets its own memory.
static void protect_written(Plan& plan) {
  std::vector<bool> defined(plan.values.size());
  for (Step& step : plan.steps) {
    if (step.out < 0 || defined[step.out]) continue;
    defined[step.out] = true;
    const Value& value = plan.values[step.out];
    if (value.origin != Origin::Fresh || !value.written) continue;
    const auto own = [out = step.out](Frame& f) {
      if (!f.here) return;
      if (f[out].use_count() > 1 || f[out].storage().use_count() > 1) f[out] = f[out].clone();
    };
    if (step.together) {
      step.together = [run = std::move(step.together), own](std::span<Frame> chips) {
        run(chips);
        for (Frame& chip : chips) own(chip);
      };
      continue;
    }
    step.run = [run = std::move(step.run), own](Frame& f) {
      run(f);
      own(f);
    };
  }
}

static std::shared_ptr<Plan> plan_checked(const Binary::Impl& binary, size_t program, const Mesh& mesh,
                                          const PlanOptions& options) {
  Planner planner(binary, options);
  planner.plan->program = program_at(binary, program).name;
  planner.plan->mesh = mesh;
  planner.program(program_at(binary, program), nullptr, &planner.plan->outputs);
  for (Slot slot : planner.plan->outputs)
    for (Slot s = slot; s >= 0; s = planner.plan->values[s].source) planner.plan->values[s].last = INT_MAX;
  for (size_t slot = 0; slot < planner.plan->values.size(); ++slot)
    if (!planner.packs(slot) || planner.plan->values[slot].written) planner.plan->packings[slot].reset();
  for (Slot slot : planner.plan->inputs) planner.plan->values[slot].direct = planner.is_direct(slot);
  for (const Value& value :
       planner.plan->values)  // views are made from their source, even if nothing reads them
    if (value.source >= 0) planner.plan->values[value.source].direct = true;
  for (Slot slot : planner.plan->outputs) {
    planner.plan->packings[planner.original(slot)].reset();
    planner.plan->values[planner.original(slot)].direct = true;
  }
  protect_written(*planner.plan);
  if (!options.arena)
    lay_out(*planner.plan, options, 1);  // with an arena, the first run that fits the device does it
  return planner.plan;
}

std::shared_ptr<Plan> make_plan(const Binary::Impl& binary, size_t program, const PlanOptions& options) {
  require_kernels(binary);
  std::map<size_t, Expanded> known;
  expanded(binary, program, 0, known);
  return plan_checked(binary, program, program_at(binary, program).mesh, options);
}

}  // namespace tt::runtime
