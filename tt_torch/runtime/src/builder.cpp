#include "builder.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty.h>

#include "failure.h"
#include "values.h"

namespace tt::runtime {

namespace {

void check_shape(const at::Tensor& value, const std::vector<int64_t>& shape) {
  if (value.sizes() != at::IntArrayRef(shape))
    throw Error(ErrorKind::Kernel, "the result has shape " + describe(value.sizes().vec()) +
                                       ", but the program describes it as " + describe(shape));
}

}  // namespace

void OpBuilder::invalid(const std::string& what) const { throw Error(ErrorKind::BinaryFormat, what); }

Slot OpBuilder::read(const wire::Record& ref) {
  const Slot slot = planner_.lookup(static_cast<uint32_t>(ref.integer("global_id")), "the op");
  planner_.touch(slot);
  return slot;
}

Slot OpBuilder::prepared(const wire::Record& ref, const std::string& form) {
  const Slot slot = read(ref);
  const std::string& found = planner_.plan->values[slot].form;
  if (!found.empty() && found != form) invalid("the op reads a value that was prepared as " + found);
  return slot;
}

Slot OpBuilder::operand(const wire::Record& ref) { return prepared(ref, ""); }

std::optional<Slot> OpBuilder::maybe_prepared(const char* field, const std::string& form) {
  const auto ref = op_.record.record(field);
  return ref ? std::optional(prepared(*ref, form)) : std::nullopt;
}

Slot OpBuilder::passed(const char* field) {
  const auto ref = op_.record.record(field);
  if (!ref) invalid(std::string("operand ") + field + " is missing");
  return read(*ref);
}

std::vector<Slot> OpBuilder::all_passed(const char* field) {
  std::vector<Slot> slots;
  for (const auto& ref : op_.record.records(field)) slots.push_back(read(ref));
  return slots;
}

std::optional<Slot> OpBuilder::maybe(const char* field) {
  const auto ref = op_.record.record(field);
  return ref ? std::optional(operand(*ref)) : std::nullopt;
}

Slot OpBuilder::in(const char* field) {
  const auto slot = maybe(field);
  if (!slot) invalid(std::string("operand ") + field + " is missing");
  return *slot;
}

std::vector<Slot> OpBuilder::ins(const char* field) {
  std::vector<Slot> slots;
  for (const auto& ref : op_.record.records(field)) slots.push_back(operand(ref));
  return slots;
}

static Slot define_result(Planner& planner, const wire::Record& ref) {
  const Operand result = decode_operand(ref);
  storage_type(result.spec.dtype);  // throws for types that a device cannot hold
  const Slot slot = planner.new_slot(result.spec);
  planner.define(result.id, slot);
  planner.plan->ops.back().outputs.push_back(slot);
  planner.plan->events.push_back({planner.current(), slot, true});
  return slot;
}

Slot OpBuilder::out(const char* field) {
  const auto ref = op_.record.record(field);
  if (!ref) invalid(std::string("result ") + field + " is missing");
  return define_result(planner_, *ref);
}

std::vector<Slot> OpBuilder::outs(const char* field) {
  std::vector<Slot> slots;
  for (const auto& ref : op_.record.records(field)) slots.push_back(define_result(planner_, ref));
  return slots;
}

const TensorSpec& OpBuilder::spec(Slot slot) const { return planner_.plan->values[slot].spec; }
bool OpBuilder::is_prepared(Slot slot) const { return !planner_.plan->values[slot].form.empty(); }

void OpBuilder::require_broadcast(std::initializer_list<Slot> operands, Slot out) const {
  std::vector<int64_t> shape;
  for (Slot slot : operands) shape = at::infer_size(shape, spec(slot).shape);
  require(shape == spec(out).shape, "the result has another shape than the broadcast operands");
}

void OpBuilder::require_scratch(int64_t elements, std::initializer_list<Slot> tensors) const {
  constexpr int64_t kFloor = 1 << 22, kFactor = 64;
  int64_t volume = 0;
  for (Slot slot : tensors) volume += checked_volume(spec(slot).shape);
  require(elements <= std::max(kFloor, volume * kFactor),
          "the op needs much more memory than its tensors have");
}

void OpBuilder::add_step(Slot out, StepFn run) {
  planner_.plan->steps.push_back({std::move(run), planner_.current(), out, nullptr, -1});
}

// Kernels check their shapes before they call this, because PyTorch would resize memory that does not fit the
// result.
void OpBuilder::write(Slot out, StepFn step) {
  const TensorSpec& result = spec(out);
  if (needs_settling(result.dtype)) {
    step = [step = std::move(step), out, dtype = result.dtype](Frame& f) {
      step(f);
      settle(f[out], dtype);
    };
  }
  if (!planner_.options.arena) {
    step = [step = std::move(step), out, shape = result.shape, type = storage_type(result.dtype)](Frame& f) {
      f[out] = at::empty(shape, type);
      step(f);
    };
  }
  planner_.plan->values[out].origin = planner_.options.arena ? Origin::Buffer : Origin::Fresh;
  add_step(out, std::move(step));
}

// A function that makes a computed value the value of a slot.
static std::function<void(Frame&, at::Tensor)> keeper(Slot out, const TensorSpec& result) {
  return [out, shape = result.shape, dtype = result.dtype, type = storage_type(result.dtype),
          settles = needs_settling(result.dtype)](Frame& f, at::Tensor value) {
    check_shape(value, shape);
    if (value.scalar_type() != type) value = value.to(type);
    // A result that shares memory with the arena would be overwritten when that memory is reused.
    if (settles || value.storage().unsafeGetStorageImpl() == f.arena) value = value.clone();
    if (settles) settle(value, dtype);
    f[out] = std::move(value);
  };
}

void OpBuilder::compute(Slot out, std::function<at::Tensor(Frame&)> step) {
  planner_.plan->values[out].origin = Origin::Fresh;
  add_step(out, [step = std::move(step), keep = keeper(out, spec(out))](Frame& f) { keep(f, step(f)); });
}

void OpBuilder::require_chips() const {
  require(planner_.options.arena, "a const-eval program runs for each chip by itself");
}

void OpBuilder::together(Slot out, Slot exchanged,
                         std::function<std::vector<at::Tensor>(std::span<Frame>)> step) {
  require_chips();
  planner_.plan->values[out].origin = Origin::Fresh;
  ChipsFn run = [step = std::move(step), keep = keeper(out, spec(out))](std::span<Frame> chips) {
    std::vector<at::Tensor> values = step(chips);
    for (size_t chip = 0; chip < chips.size(); ++chip)
      if (chips[chip].here) keep(chips[chip], std::move(values[chip]));
  };
  planner_.plan->steps.push_back({nullptr, planner_.current(), out, nullptr, -1, std::move(run), exchanged});
}

const Mesh& OpBuilder::mesh() const { return planner_.plan->mesh; }

bool OpBuilder::exact() const { return planner_.options.exact; }

void OpBuilder::opaque(Slot out, std::string form, std::function<at::Tensor(Frame&)> step) {
  planner_.plan->values[out].origin = Origin::Fresh;
  planner_.plan->values[out].form = std::move(form);
  add_step(out, [step = std::move(step), out](Frame& f) { f[out] = step(f); });
}

void OpBuilder::view(Slot out, Slot source, ViewFn view) {
  const DataType dtype = spec(out).dtype;
  // A chip packs moved block floats again, and other numbers share an exponent then.
  if (storage_type(dtype) != storage_type(spec(source).dtype) || is_block_float(dtype))
    return compute(out, [view = std::move(view), source](Frame& f) { return view(f[source]); });
  share(out, source, std::move(view));
}

void OpBuilder::share(Slot out, Slot source, ViewFn view) {
  Value& value = planner_.plan->values[out];
  value.origin = Origin::View;
  value.source = source;
  const bool opaque = !value.form.empty();
  ViewFn checked = [view = std::move(view), shape = value.spec.shape, opaque](const at::Tensor& tensor) {
    at::Tensor result = view(tensor);
    if (!opaque && !result.is_mkldnn()) check_shape(result, shape);
    return result;
  };
  planner_.plan->steps.push_back({nullptr, planner_.current(), out, std::move(checked), source});
}

void OpBuilder::same(Slot out, Slot source) {
  const TensorSpec &from = spec(source), &to = spec(out);
  const std::string form = planner_.plan->values[source].form;
  planner_.plan->values[out].form = form;
  if (from.dtype == to.dtype) {
    // Readers of the alias count as readers of the source. The alias itself is no reader.
    planner_.plan->values[out].alias = true;
    --planner_.touches_[planner_.original(source)];
    return share(out, source, [](const at::Tensor& t) { return t; });
  }
  const auto converted = [source, dtype = to.dtype](Frame& f) {
    return to_value(f[source].is_mkldnn() ? f[source].to_dense() : f[source], dtype);
  };
  form.empty() ? compute(out, converted) : opaque(out, form, converted);
}

void OpBuilder::update(Slot target, StepFn step) {
  auto& values = planner_.plan->values;
  for (Slot slot = target; slot >= 0; slot = values[slot].source) values[slot].written = true;
  if (needs_settling(spec(target).dtype)) {
    step = [step = std::move(step), target, dtype = spec(target).dtype](Frame& f) {
      step(f);
      settle(f[target], dtype);
    };
  }
  add_step(target, std::move(step));
}

void OpBuilder::prefer(Slot slot, Packing packing) {
  const Slot source = planner_.original(slot);
  if (planner_.plan->values[source].origin != Origin::Bound) return;
  auto& wanted = planner_.plan->packings[source];
  if (!wanted || wanted->key == packing.key) ++planner_.wants_[source];
  if (!wanted) wanted = std::move(packing);
}

int64_t OpBuilder::dim(int64_t dim, int64_t rank) const {
  const int64_t normal = dim < 0 ? dim + rank : dim;
  if (normal < 0 || normal >= std::max<int64_t>(rank, 1))
    invalid("dimension " + std::to_string(dim) + " is out of range for a tensor of rank " +
            std::to_string(rank));
  return normal;
}

// The tail as which `next` can run. `next` is an op that reads the value `id`. Null if it cannot be a tail,
// or if its other operand does not exist yet.
std::optional<OpBuilder::Tail> Planner::tail(const Operation& next, uint32_t id, bool allow_binary) const {
  const auto type = next.record.name_in("type");
  if (next.name == "EltwiseUnaryOp" && type == "Relu") return OpBuilder::Tail{"relu", -1};
  // The value between two ops is rounded to its type. Only a relu gives the same result before and after this
  // rounding.
  if (storage_type(plan->values[ids_.at(id)].spec.dtype) != at::kFloat) return std::nullopt;
  if (next.name == "EltwiseUnaryOp" && type == "Gelu") return OpBuilder::Tail{"gelu", -1};
  if (!allow_binary || next.name != "EltwiseBinaryOp" || type != "Add") return std::nullopt;
  for (const char* field : {"activations", "input_tensor_a_activations", "input_tensor_b_activations"})
    if (!next.record.records(field).empty()) return std::nullopt;
  for (const char* field : {"lhs", "rhs"}) {
    const auto ref = next.record.record(field);
    const auto other = ids_.find(ref ? static_cast<uint32_t>(ref->integer("global_id")) : id);
    if (other != ids_.end() && other->first != id && plan->values[other->second].form.empty())
      return OpBuilder::Tail{"", other->second};
  }
  return std::nullopt;
}

std::optional<OpBuilder::Tail> OpBuilder::absorb(Slot& out, bool allow_binary) {
  if (!planner_.options.fuse) return std::nullopt;
  const uint32_t id = planner_.names_[out];
  const auto& readers = planner_.readers_[id];
  // The first entry is the op that defines the value. Exactly one op of this program may read it.
  if (id == 0 || readers.size() != 2 || readers[1] >= planner_.program_->operations.size())
    return std::nullopt;
  const Operation& next = planner_.program_->operations[readers[1]];
  const auto tail = planner_.tail(next, id, allow_binary);
  const auto result = next.record.record("out");
  if (!tail || !result) return std::nullopt;
  const TensorSpec wanted = decode_operand(*result).spec;
  const auto fits = [&](Slot s) { return spec(s).dtype == wanted.dtype && spec(s).shape == wanted.shape; };
  if (!fits(out) || (tail->other >= 0 && !fits(tail->other))) return std::nullopt;
  if (tail->other >= 0) planner_.touch(tail->other);
  planner_.absorbed_[readers[1]] = true;
  out = planner_.new_slot(wanted);
  planner_.define(static_cast<uint32_t>(result->integer("global_id")), out);
  return tail;
}

}  // namespace tt::runtime
