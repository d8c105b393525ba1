// What a kernel sees of one op while the plan is made: its attributes, operands and results.
#pragma once

#include <map>
#include <span>
#include <unordered_map>

#include "plan.h"
#include "tt/runtime/error.h"

namespace tt::runtime {

class Planner;

class OpBuilder {
 public:
  OpBuilder(Planner& planner, const Operation& op) : planner_(planner), op_(op) {}

  const wire::Record& attributes() const { return op_.record; }
  const Operation& operation() const { return op_; }

  // Operands and results by field name. A missing operand is a BinaryFormat error.
  Slot in(const char* field);
  std::optional<Slot> maybe(const char* field);
  std::vector<Slot> ins(const char* field);
  Slot operand(const wire::Record& tensor_ref);
  // An operand that an op before may have prepared: it has just this form, or is a plain tensor.
  Slot prepared(const wire::Record& tensor_ref, const std::string& form);
  std::optional<Slot> maybe_prepared(const char* field, const std::string& form);
  // Operands of any form, for ops that only pass them on.
  Slot passed(const char* field);
  std::vector<Slot> all_passed(const char* field);
  Slot out(const char* field = "out");
  std::vector<Slot> outs(const char* field);
  const TensorSpec& spec(Slot slot) const;
  bool is_prepared(Slot slot) const;
  bool reads(const char* field) const { return op_.record.has(field); }

  // A step that writes into memory the plan provides, of the result's shape and storage type.
  void write(Slot out, StepFn step);
  // A step that allocates its result. Its shape must be the described one; its type is converted.
  void compute(Slot out, std::function<at::Tensor(Frame&)> step);
  // A step that computes a result whose shape is its own matter (a packed weight). `form` says what it is
  // for: only ops that ask for the same form can read it.
  void opaque(Slot out, std::string form, std::function<at::Tensor(Frame&)> step);
  // The result shares the memory of `source`.
  void view(Slot out, Slot source, ViewFn view);
  void same(Slot out, Slot source);  // the same value, converted when the types differ
  // A step that updates `target` in place.
  void update(Slot target, StepFn step);

  // Asks for a constant operand in packed form. Granted if all its readers ask for the same.
  void prefer(Slot slot, Packing packing);

  // If the only reader of `out` is an op that can run as the tail of this one, absorbs it: returns that
  // op, and `out` becomes its result.
  struct Tail {
    std::string activation;  // "relu" or "gelu", "" for an add
    Slot other;              // the second operand of an add, or -1
  };
  std::optional<Tail> absorb(Slot& out, bool allow_binary);

  int64_t dim(int64_t dim, int64_t rank) const;  // normalized; BinaryFormat error when out of range
  // A BinaryFormat error. The planner adds the op and its location, as to every error while it plans an op.
  [[noreturn]] void invalid(const std::string& what) const;
  void require(bool condition, const char* what) const {
    if (!condition) invalid(what);
  }
  // The operands broadcast to the result's shape. Checked before anything of another size is made.
  void require_broadcast(std::initializer_list<Slot> operands, Slot out) const;
  // Memory that a kernel takes between operands and results, in elements. It is bounded by what they have
  // themselves, since the numbers of a file could ask for anything.
  void require_scratch(int64_t elements, std::initializer_list<Slot> tensors) const;
  Planner& planner() { return planner_; }

 private:
  Slot read(const wire::Record& tensor_ref);
  void add_step(Slot out, StepFn run);
  Planner& planner_;
  const Operation& op_;
};

// Walks the operations of a program and collects the plan.
class Planner {
 public:
  Planner(const Binary::Impl& binary, const PlanOptions& options, int depth)
      : plan(std::make_shared<Plan>()), options(options), binary(binary), depth_(depth) {}

  void program(size_t index, const std::vector<Slot>* arguments, std::vector<Slot>* results);
  Slot new_slot(const TensorSpec& spec);
  Slot lookup(uint32_t id, const std::string& who) const;
  void touch(Slot slot);           // the current op reads it
  Slot original(Slot slot) const;  // behind aliases
  void define(uint32_t id, Slot slot) { ids_[id] = slot, names_[slot] = id; }
  void forget(uint32_t id);
  int current() const { return static_cast<int>(plan->ops.size()) - 1; }
  bool packs(size_t slot) const {
    return wants_[slot] == touches_[slot];
  }  // all its readers want one packing
  void load_cached(OpBuilder& op);
  void call(OpBuilder& op, size_t program);
  std::span<const uint8_t> library(int64_t id) const;  // host code of the binary

  std::shared_ptr<Plan> plan;
  const PlanOptions options;
  const Binary::Impl& binary;

 private:
  friend class OpBuilder;
  void count_readers(const Program& program);
  void operations(const Program& program);
  std::optional<OpBuilder::Tail> tail(const Operation& next, uint32_t id, bool allow_binary) const;

  int depth_;
  std::unordered_map<uint32_t, Slot> ids_;
  std::unordered_map<uint32_t, std::vector<size_t>> readers_;  // op indices in the current program
  std::vector<bool> absorbed_;
  std::vector<int> wants_, touches_;  // per slot: packing requests and reads
  std::vector<uint32_t> names_;       // per slot: the id that it was defined under last
  const Program* program_ = nullptr;
};

using Kernel = void (*)(OpBuilder&);
Kernel find_kernel(std::string_view op);  // null when there is none

}  // namespace tt::runtime
