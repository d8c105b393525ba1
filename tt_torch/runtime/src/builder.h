// The interface through which a kernel builder reads one op's attributes, operands and results, and adds the
// op's steps to the plan.
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

  // Operands and results by field name. A missing operand or result throws a BinaryFormat error, except in
  // maybe().
  Slot in(const char* field);
  std::optional<Slot> maybe(const char* field);
  std::vector<Slot> ins(const char* field);
  Slot operand(const wire::Record& tensor_ref);
  // An operand that an earlier op may have prepared. It has exactly this form or is a plain tensor.
  Slot prepared(const wire::Record& tensor_ref, const std::string& form);
  std::optional<Slot> maybe_prepared(const char* field, const std::string& form);
  // Operands in any form, for ops that only pass them on.
  Slot passed(const char* field);
  std::vector<Slot> all_passed(const char* field);
  Slot out(const char* field = "out");
  std::vector<Slot> outs(const char* field);
  const TensorSpec& spec(Slot slot) const;
  bool is_prepared(Slot slot) const;
  bool reads(const char* field) const { return op_.record.has(field); }

  // Adds a step that writes into memory of the plan, which has the result's shape and storage type.
  void write(Slot out, StepFn step);
  // Adds a step that returns a new tensor. Its shape must be the described one; its type is converted.
  void compute(Slot out, std::function<at::Tensor(Frame&)> step);
  // Adds a step whose result has another shape than described, such as a packed weight. `form` names the use
  // that it was prepared for: only ops that ask for the same form can read it.
  void opaque(Slot out, std::string form, std::function<at::Tensor(Frame&)> step);
  // The result shares the memory of `source`, except for block floats, which are rounded again.
  void view(Slot out, Slot source, ViewFn view);
  void same(Slot out, Slot source);  // the same value, converted when the types differ
  // Adds a step that updates `target` in place.
  void update(Slot target, StepFn step);

  // Adds a step that runs on all chips at once, and reads the values of other chips in one slot. It returns
  // one value per chip, in the form that `compute` takes. The values for chips of other processes are not
  // used.
  void together(Slot out, Slot exchanged, std::function<std::vector<at::Tensor>(std::span<Frame>)> step);
  // Throws in a const-eval program. Such a program runs separately for each chip, and does not know which
  // chip it is.
  void require_chips() const;
  const Mesh& mesh() const;
  bool exact() const;  // whether the device computes as the matrix unit of a chip

  // Asks for a constant operand in packed form. It is packed if all of its readers ask for the same form.
  void prefer(Slot slot, Packing packing);

  // If only one op reads `out`, and it can run as the tail of this op, absorbs that op. Returns the tail, and
  // sets `out` to the result of the absorbed op. Example: a relu after a matmul.
  struct Tail {
    std::string activation;  // "relu" or "gelu", "" for an add
    Slot other;              // the second operand of an add, or -1
  };
  std::optional<Tail> absorb(Slot& out, bool allow_binary);

  // The dimension from 0 to rank - 1; a negative one counts from the end. BinaryFormat error if out of range.
  int64_t dim(int64_t dim, int64_t rank) const;
  // Throws a BinaryFormat error. The planner adds the op and its location to each error of a kernel builder.
  [[noreturn]] void invalid(const std::string& what) const;
  void require(bool condition, const char* what) const {
    if (!condition) invalid(what);
  }
  // Checks that the operands broadcast to the result's shape, before the kernel allocates a tensor of another
  // size.
  void require_broadcast(std::initializer_list<Slot> operands, Slot out) const;
  // Checks the memory that a kernel needs besides operands and results, in elements. The limit depends on the
  // sizes of these tensors, because the numbers in a file could ask for any amount.
  void require_scratch(int64_t elements, std::initializer_list<Slot> tensors) const;
  Planner& planner() { return planner_; }

 private:
  Slot read(const wire::Record& tensor_ref);
  void add_step(Slot out, StepFn run);
  void share(Slot out, Slot source, ViewFn view);  // the result shares the memory of `source`
  Planner& planner_;
  const Operation& op_;
};

// Walks the operations of a program and collects the plan.
class Planner {
 public:
  Planner(const Binary::Impl& binary, const PlanOptions& options)
      : plan(std::make_shared<Plan>()), options(options), binary(binary) {}

  void program(const Program& program, const std::vector<Slot>* arguments, std::vector<Slot>* results);
  Slot new_slot(const TensorSpec& spec);
  Slot lookup(uint32_t id, const std::string& who) const;
  void touch(Slot slot);           // notes that the current op reads the slot
  Slot original(Slot slot) const;  // follows aliases to their source
  void define(uint32_t id, Slot slot) { ids_[id] = slot, names_[slot] = id; }
  void forget(uint32_t id);
  int current() const { return static_cast<int>(plan->ops.size()) - 1; }
  // Whether all readers of the slot want the same packing.
  bool packs(size_t slot) const { return wants_[slot] == touches_[slot]; }
  // Whether the slot has readers besides the const-eval programs whose results are cached.
  bool is_direct(size_t slot) const { return touches_[slot] > plan->values[slot].constants; }
  void load_cached(OpBuilder& op);
  void call(OpBuilder& op, size_t program);
  void replay(OpBuilder& op);                          // a recording that the device captured
  std::span<const uint8_t> library(int64_t id) const;  // a shared library that the binary contains

  std::shared_ptr<Plan> plan;
  const PlanOptions options;
  const Binary::Impl& binary;

 private:
  friend class OpBuilder;
  void count_readers(const Program& program);
  void operations(const Program& program);
  std::vector<Slot> given(OpBuilder& op);
  std::vector<Slot> expand(OpBuilder& op, const Program& callee, const std::vector<Slot>& arguments);
  void give(OpBuilder& op, std::span<const Slot> results);
  std::optional<OpBuilder::Tail> tail(const Operation& next, uint32_t id, bool allow_binary) const;

  std::unordered_map<uint32_t, Slot> ids_;
  std::unordered_map<uint32_t, std::vector<size_t>> readers_;  // op indices in the current program
  std::vector<bool> absorbed_;
  std::vector<int> wants_, touches_;  // per slot: packing requests and reads
  std::vector<uint32_t> names_;       // per slot: the id that it was defined under last
  const Program* program_ = nullptr;
};

using Kernel = void (*)(OpBuilder&);
Kernel find_kernel(std::string_view op);  // null if the op has no kernel

}  // namespace tt::runtime
