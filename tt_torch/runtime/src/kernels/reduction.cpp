// Reductions, scans and orderings.
#include "kernels/kernels.h"
#include "kernels/matrix_unit.h"
#include "kernels/sorting.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;
using Ints = std::vector<int64_t>;

// The dimensions in `dim_arg`, or all dimensions if it is empty.
Ints reduced_dims(OpBuilder& op, Slot source) {
  Ints dims = op.attributes().integers("dim_arg");
  if (dims.empty())
    for (int64_t d = 0; d < rank(op, source); ++d) dims.push_back(d);
  for (int64_t& d : dims) d = op.dim(d, rank(op, source));
  return dims;
}

using Reduce = Tensor (*)(const Tensor& t, const Ints& dims, bool keep);

// bf16 inputs accumulate in float32.
constexpr wire::Named<Reduce> reductions[] = {
    {"Sum", [](const Tensor& t, const Ints& dims, bool keep) { return at::sum(t, dims, keep); }},
    {"Mean",
     [](const Tensor& t, const Ints& dims, bool keep) {
       return at::mean(t, dims, keep, at::isFloatingType(t.scalar_type()) ? t.scalar_type() : at::kFloat);
     }},
    {"Max", [](const Tensor& t, const Ints& dims, bool keep) { return at::amax(t, dims, keep); }},
    {"Min", [](const Tensor& t, const Ints& dims, bool keep) { return at::amin(t, dims, keep); }},
};

// Computes sums and means of bf16 over one of the last two dimensions. The matrix unit computes them as
// products with a vector of equal numbers. Returns false for other reductions.
bool reduce_exactly(OpBuilder& op, Slot source, Slot out) {
  const Ints dims = reduced_dims(op, source);
  const auto type = op.attributes().name_in("type");
  const auto& spec = op.spec(source);
  const auto rank = static_cast<int64_t>(spec.shape.size());
  const bool narrow = spec.dtype == DataType::BFloat16 && op.spec(out).dtype == DataType::BFloat16;
  if (!op.exact() || !narrow || (type != "Sum" && type != "Mean") || dims.size() != 1 || rank < 2)
    return false;
  if (dims[0] < rank - 2 || spec.shape[dims[0]] == 0) return false;
  const double scale = type == "Mean" ? 1.0 / static_cast<double>(spec.shape[dims[0]]) : 1.0;
  const auto how = matrix_unit::accuracy_of(op, {4, true, false});
  op.compute(out, [=, dim = dims[0], columns = dims[0] == rank - 2, shape = op.spec(out).shape](Frame& f) {
    const Tensor sums = matrix_unit::scaled_sum(f[source], dim, columns, scale, how);
    return matrix_unit::packed(sums, DataType::BFloat16).reshape(shape);
  });
  return true;
}

}  // namespace

static void reduction(OpBuilder& op) {
  const Reduce reduce = op.attributes().choose("type", reductions);
  const Slot source = op.in("in"), out = op.out();
  const bool keep = op.attributes().flag("keep_dim");
  if (reduce_exactly(op, source, out)) return;
  op.compute(out, [=, dims = reduced_dims(op, source), shape = op.spec(out).shape](Frame& f) {
    return reduce(f[source], dims, keep).reshape(shape);
  });
}

static void product(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  const auto given = op.attributes().maybe_integer("dim_arg");
  const bool keep = op.attributes().flag("keep_dim");
  const std::optional<int64_t> dim = given ? std::optional(op.dim(*given, rank(op, source))) : std::nullopt;
  op.compute(out, [=, shape = op.spec(out).shape](Frame& f) {
    return (dim ? at::prod(f[source], *dim, keep) : at::prod(f[source])).reshape(shape);
  });
}

static void argmax(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  const auto given = op.attributes().maybe_integer("dim");
  const std::optional<int64_t> dim = given ? std::optional(op.dim(*given, rank(op, source))) : std::nullopt;
  const bool keep = op.attributes().flag("keep_dim");
  op.compute(out, [=, shape = op.spec(out).shape](Frame& f) {
    return at::argmax(f[source], dim, keep && dim).reshape(shape);
  });
}

static void cumulative_sum(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  const int64_t dim = op.dim(op.attributes().integer("dim"), rank(op, source));
  op.compute(out, [=](Frame& f) { return at::cumsum(f[source], dim); });
}

static void cumulative_product(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  const int64_t dim = op.dim(op.attributes().integer("dim"), rank(op, source));
  op.compute(out, [=](Frame& f) { return at::cumprod(f[source], dim); });
}

// Adds two steps for the two results of one call. The first step makes the call, the second takes its result.
static void two_results(OpBuilder& op, const std::vector<Slot>& outs,
                        std::function<std::tuple<Tensor, Tensor>(Frame&)> call) {
  op.require(outs.size() == 2, "the op must have two results");
  op.compute(outs[0], [=](Frame& f) {
    auto [values, positions] = call(f);
    f.further = {std::move(positions)};
    return values;
  });
  op.compute(outs[1], [](Frame& f) { return std::move(f.further[0]); });
}

static void sort(OpBuilder& op) {
  const Slot source = op.in("in");
  const int64_t dim = op.dim(op.attributes().integer("dim"), rank(op, source));
  const bool descending = op.attributes().flag("descending"), stable = op.attributes().flag("stable");
  two_results(op, op.outs("outputs"), [=](Frame& f) {
    return stable ? stable_sort(f[source], dim, descending) : at::sort(f[source], false, dim, descending);
  });
}

static void top_k(OpBuilder& op) {
  const Slot source = op.in("input_tensor");
  const int64_t dim = op.dim(op.attributes().integer("dim"), rank(op, source)),
                k = op.attributes().integer("k");
  const bool largest = op.attributes().flag("largest"), sorted = op.attributes().flag("sorted");
  two_results(op, op.outs("outputs"), [=](Frame& f) { return at::topk(f[source], k, dim, largest, sorted); });
}

static constexpr Row reduction_rows[] = {
    {"CumProdOp", cumulative_product},
    {"CumSumOp", cumulative_sum},
    {"ReductionArgMaxOp", argmax},
    {"ReductionOp", reduction},
    {"ReductionProdOp", product},
    {"SortOp", sort},
    {"TopKOp", top_k},
};
constinit const Table reduction_ops = reduction_rows;

}  // namespace tt::runtime::kernels
