// Data movement: the results have the same values in another order or shape.
#include "kernels/kernels.h"

namespace tt::runtime::kernels {

using Ints = std::vector<int64_t>;

static void reshape(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  const Ints shape = op.spec(out).shape;
  op.require(checked_volume(shape) == checked_volume(op.spec(source).shape),
             "operand and result have different numbers of elements");
  op.view(out, source, [shape](const at::Tensor& t) { return t.reshape(shape); });
}

static void reorder(OpBuilder& op, Slot source, Slot out, Ints order) {
  const Ints& from = op.spec(source).shape;
  op.require(order.size() == from.size() && op.spec(out).shape.size() == from.size(),
             "the ranks of operand, result and permutation differ");
  std::vector<bool> seen(order.size());
  bool moves = false;  // moving dimensions of size one does not move data
  int64_t previous = -1;
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = op.dim(order[i], static_cast<int64_t>(from.size()));
    op.require(!seen[order[i]], "the permutation repeats a dimension");
    op.require(op.spec(out).shape[i] == from[order[i]],
               "the result's shape is not that of the permuted operand");
    seen[order[i]] = true;
    if (from[order[i]] == 1) continue;
    moves |= order[i] < previous;
    previous = order[i];
  }
  if (!moves)
    return op.view(out, source,
                   [shape = op.spec(out).shape](const at::Tensor& t) { return t.reshape(shape); });
  op.write(out, [=](Frame& f) { f[out].copy_(f[source].permute(order)); });
}

static void permute(OpBuilder& op) {
  const Slot source = op.in("in");
  reorder(op, source, op.out(), op.attributes().integers("permutation"));
}

static void transpose(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  Ints order(rank(op, source));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  if (order.empty()) return op.same(out, source);
  std::swap(order[op.dim(op.attributes().integer("dim0"), rank(op, source))],
            order[op.dim(op.attributes().integer("dim1"), rank(op, source))]);
  reorder(op, source, out, std::move(order));
}

static void concat(OpBuilder& op) {
  const std::vector<Slot> sources = op.ins("inputs");
  const Slot out = op.out();
  op.require(!sources.empty(), "there are no operands to concatenate");
  const int64_t dim = op.dim(op.attributes().integer("dim"), rank(op, out));
  Ints shape = op.spec(sources[0]).shape;
  op.require(!shape.empty() && rank(op, out) == static_cast<int64_t>(shape.size()),
             "the operands are scalars, or the result has another rank");
  shape[dim] = 0;
  for (Slot slot : sources) {
    const Ints& part = op.spec(slot).shape;
    op.require(part.size() == shape.size(), "the ranks of the operands differ");
    for (size_t d = 0; d < shape.size(); ++d)
      if (static_cast<int64_t>(d) != dim)
        op.require(part[d] == shape[d], "the operands differ in a dimension that is not joined");
    shape[dim] += part[dim];
  }
  op.require(shape == op.spec(out).shape, "the result's shape is not that of the joined operands");
  op.write(out, [=](Frame& f) {
    std::vector<at::Tensor> parts;
    for (Slot slot : sources) parts.push_back(f[slot]);
    at::cat_out(f[out], parts, dim);
  });
}

namespace {

// As in Python, bounds outside of the source mean its edges.
at::Tensor cut(const at::Tensor& source, Ints begins, Ints ends, const Ints& steps) {
  at::Tensor result = source;
  for (size_t d = 0; d < begins.size(); ++d) {
    const int64_t size = source.size(static_cast<int64_t>(d));
    begins[d] = std::clamp(begins[d], -size - 1, size);
    ends[d] = std::clamp(ends[d], -size - 1, size);
    if (steps[d] > 0) {
      result = result.slice(static_cast<int64_t>(d), begins[d], ends[d], steps[d]);
    } else {  // backwards: the same elements forwards, then flipped
      const int64_t first = begins[d] < 0 ? begins[d] + size : std::min(begins[d], size - 1);
      const int64_t last = ends[d] < 0 ? std::max<int64_t>(ends[d] + size, -1) : ends[d];
      const int64_t count = std::max<int64_t>(0, (first - last - steps[d] - 1) / -steps[d]);
      result = result.slice(static_cast<int64_t>(d), first + steps[d] * (count - 1), first + 1, -steps[d])
                   .flip({static_cast<int64_t>(d)});
    }
  }
  return result;
}

Ints as_ints(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kLong).contiguous();
  return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
}

}  // namespace

static void slice(OpBuilder& op) {
  constexpr wire::Named<bool> bounds_are_tensors[] = {{"SliceStaticOp", false}, {"SliceDynamicOp", true}};
  const bool dynamic = op.attributes().choose("type", bounds_are_tensors);
  const Slot source = op.in("in");
  const auto dims = static_cast<size_t>(rank(op, source));
  const auto params = op.attributes().member("params");
  op.require(params.has_value(), "params are missing");
  Ints steps = op.attributes().integers("step");
  if (steps.empty()) steps.assign(dims, 1);
  op.require(steps.size() == dims, "step must have one number per dimension");
  for (int64_t step : steps)
    op.require(step != 0 && step < (1 << 30) && step > -(1 << 30), "a step is out of range");
  if (dynamic) {
    const auto from = params->record("begins"), to = params->record("ends");
    op.require(from && to, "begins or ends are missing");
    const Slot begins = op.operand(*from), ends = op.operand(*to), out = op.out();
    op.require(checked_volume(op.spec(begins).shape) == static_cast<int64_t>(dims) &&
                   checked_volume(op.spec(ends).shape) == static_cast<int64_t>(dims),
               "begins and ends must have one number per dimension");
    return op.compute(out, [=](Frame& f) {
      return cut(f[source], as_ints(f[begins]), as_ints(f[ends]), steps).contiguous();
    });
  }
  const Ints begins = params->integers("begins"), ends = params->integers("ends");
  op.require(begins.size() == dims && ends.size() == dims,
             "begins and ends must have one number per dimension");
  const Slot out = op.out();
  op.write(out, [=](Frame& f) { f[out].copy_(cut(f[source], begins, ends, steps)); });
}

static void pad(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  const Ints given = op.attributes().integers("padding");
  const double value = op.attributes().real("value");
  op.require(given.size() == 2 * op.spec(source).shape.size(), "padding must have two numbers per dimension");
  Ints widths;  // ATen counts from the last dimension
  for (size_t d = given.size() / 2; d-- > 0;) {
    op.require(given[2 * d] <= 1 << 30 && given[2 * d + 1] <= 1 << 30, "padding is out of range");
    op.require(op.spec(out).shape.size() > d &&
                   op.spec(out).shape[d] == op.spec(source).shape[d] + given[2 * d] + given[2 * d + 1],
               "the result's shape is not that of the padded operand");
    widths.insert(widths.end(), {given[2 * d], given[2 * d + 1]});
  }
  op.compute(out, [=](Frame& f) { return at::constant_pad_nd(f[source], widths, value); });
}

static void repeat(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  const Ints counts = op.attributes().integers("repeat_dims");
  const Ints& from = op.spec(source).shape;
  op.require(counts.size() == from.size() && op.spec(out).shape.size() == from.size(),
             "the ranks of operand, result and repeat_dims differ");
  bool broadcasts = true;  // repeating dimensions of size one is an expansion
  for (size_t d = 0; d < counts.size(); ++d) {
    op.require(counts[d] >= 0 && counts[d] <= 1 << 30 && from[d] * counts[d] == op.spec(out).shape[d],
               "repeat_dims is out of range, or the result's shape is not that of the repeated operand");
    broadcasts &= counts[d] == 1 || from[d] == 1;
  }
  if (broadcasts) return op.write(out, [=](Frame& f) { f[out].copy_(f[source]); });
  op.compute(out, [=](Frame& f) { return f[source].repeat(counts); });
}

static void repeat_interleave(OpBuilder& op) {
  const Slot source = op.in("input"), out = op.out();
  const int64_t dim = op.dim(op.attributes().integer("dim"), rank(op, source));
  const int64_t count = op.attributes().integer("repeats");
  op.require(rank(op, source) > 0 && rank(op, out) == rank(op, source) && count <= 1 << 20 &&
                 op.spec(out).shape[dim] == op.spec(source).shape[dim] * count,
             "repeats is out of range, or the result's shape is not that of the repeated operand");
  op.compute(out, [=](Frame& f) { return at::repeat_interleave(f[source], count, dim); });
}

static constexpr Row movement_rows[] = {
    {"ConcatOp", concat},   {"PadOp", pad},
    {"PermuteOp", permute}, {"RepeatInterleaveOp", repeat_interleave},
    {"RepeatOp", repeat},   {"ReshapeOp", reshape},
    {"SliceOp", slice},     {"TransposeOp", transpose},
};
constinit const Table movement_ops = movement_rows;

}  // namespace tt::runtime::kernels
