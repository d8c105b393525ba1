// Ops in which the chips of a mesh exchange values. The chips run in lock step, so a collective reads the
// values of all chips and makes the results of all chips. If several processes share the mesh, each process
// computes with all values, so that all processes have the same sums. A sum adds the values in the order of
// the chips, and rounds to the data type after each addition.
#include <ATen/Functions.h>

#include "kernels/kernels.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;
using Tensors = std::vector<Tensor>;
using Group = std::vector<size_t>;  // the numbers of chips

// The groups of chips along an axis of the mesh: axis 0 joins the chips of a column, axis 1 the chips of a
// row. Without an axis, all chips are one group.
std::vector<Group> groups_of(const Mesh& mesh, std::optional<int64_t> axis) {
  const auto rows = static_cast<size_t>(mesh.rows), columns = static_cast<size_t>(mesh.columns);
  std::vector<Group> groups(!axis ? 1 : *axis == 0 ? columns : rows);
  for (size_t row = 0; row < rows; ++row)
    for (size_t column = 0; column < columns; ++column)
      groups[!axis ? 0 : *axis == 0 ? column : row].push_back(row * columns + column);
  return groups;
}

// The groups along the op's axis. Each has at least one chip.
std::vector<Group> groups_of(OpBuilder& op, bool optional = false) {
  const auto axis = op.attributes().maybe_integer("cluster_axis");
  if (!axis && optional) return groups_of(op.mesh(), std::nullopt);
  op.require(axis.value_or(0) <= 1, "a mesh has the axes 0 and 1");
  return groups_of(op.mesh(), axis.value_or(0));
}

int64_t size_of(const std::vector<Group>& groups) { return static_cast<int64_t>(groups[0].size()); }

// The tensors of a group's chips, in the order of the chips.
Tensors of_group(std::span<Frame> chips, const Group& group, Slot slot) {
  Tensors values;
  for (const size_t chip : group) values.push_back(chips[chip][slot]);
  return values;
}

Tensor sum_of(const Tensors& values) {
  Tensor sum = values[0].clone();
  for (size_t i = 1; i < values.size(); ++i) sum.add_(values[i]);
  return sum;
}

// The shape with one dimension `times` as large.
std::vector<int64_t> grown(std::vector<int64_t> shape, int64_t dim, int64_t times) {
  shape[static_cast<size_t>(dim)] *= times;
  return shape;
}

// A result with the operand's shape, in which dimension `dim` is `times` as large.
Slot grown_out(OpBuilder& op, Slot in, int64_t dim, int64_t times) {
  const Slot out = op.out();
  op.require(op.spec(out).shape == grown(op.spec(in).shape, dim, times), "the result has another shape");
  op.require(op.spec(out).dtype == op.spec(in).dtype, "operand and result have different data types");
  return out;
}

// A result that is one of `parts` equal parts of the operand.
Slot part_out(OpBuilder& op, Slot in, int64_t dim, int64_t parts) {
  const Slot out = op.out();
  op.require(op.spec(in).shape.size() == op.spec(out).shape.size() &&
                 op.spec(in).shape == grown(op.spec(out).shape, dim, parts),
             "the result has another shape");
  op.require(op.spec(out).dtype == op.spec(in).dtype, "operand and result have different data types");
  return out;
}

// A dimension of a tensor that is not a scalar.
int64_t dim_of(OpBuilder& op, const char* field, Slot slot) {
  op.require(rank(op, slot) > 0, "the operand has no dimensions");
  return op.dim(op.attributes().integer(field), rank(op, slot));
}

// The library's collectives always add, even if a program names another reduction. So only a sum is accepted.
void require_sum(OpBuilder& op) {
  constexpr int64_t kSum = 0;
  const bool sums = op.attributes().integer("reduce_type") == kSum;
  op.require(sums, "the reduction of a collective must be a sum");
}

}  // namespace

static void all_gather(OpBuilder& op) {
  const Slot in = op.in("in");
  const auto groups = groups_of(op);
  const int64_t dim = dim_of(op, "all_gather_dim", in);
  const Slot out = grown_out(op, in, dim, size_of(groups));
  op.together(out, in, [=](std::span<Frame> chips) {
    Tensors results(chips.size());
    for (const Group& group : groups) {
      const Tensor all = at::cat(of_group(chips, group, in), dim);
      for (const size_t chip : group) results[chip] = all;
    }
    return results;
  });
}

static void all_reduce(OpBuilder& op) {
  const Slot in = op.in("in");
  const auto groups = groups_of(op);
  require_sum(op);
  const Slot out = op.out();
  op.require(op.spec(out).shape == op.spec(in).shape && op.spec(out).dtype == op.spec(in).dtype,
             "operand and result have different shapes or data types");
  op.together(out, in, [=](std::span<Frame> chips) {
    Tensors results(chips.size());
    for (const Group& group : groups) {
      const Tensor sum = sum_of(of_group(chips, group, in));
      for (const size_t chip : group) results[chip] = sum;
    }
    return results;
  });
}

static void reduce_scatter(OpBuilder& op) {
  const Slot in = op.in("in");
  const auto groups = groups_of(op);
  require_sum(op);
  const int64_t dim = dim_of(op, "scatter_dim", in), parts = size_of(groups);
  const Slot out = part_out(op, in, dim, parts);
  op.together(out, in, [=](std::span<Frame> chips) {
    Tensors results(chips.size());
    for (const Group& group : groups) {
      const Tensors sums = sum_of(of_group(chips, group, in)).chunk(parts, dim);
      for (size_t i = 0; i < group.size(); ++i) results[group[i]] = sums[i].contiguous();
    }
    return results;
  });
}

// Each chip keeps the part that belongs to its place along the axis.
static void mesh_partition(OpBuilder& op) {
  const Slot in = op.in("in");
  const auto groups = groups_of(op, true);
  const int64_t dim = dim_of(op, "dim", in), parts = size_of(groups);
  const Slot out = part_out(op, in, dim, parts);
  const int64_t length = op.spec(out).shape[static_cast<size_t>(dim)];
  std::vector<int64_t> places(static_cast<size_t>(op.mesh().volume()));
  for (const Group& group : groups)
    for (size_t i = 0; i < group.size(); ++i) places[group[i]] = static_cast<int64_t>(i);
  op.require_chips();
  op.compute(out, [=](Frame& f) { return f[in].narrow(dim, places[f.chip] * length, length).contiguous(); });
}

// The number of the chip at [row, column].
static size_t chip_at(OpBuilder& op, const char* field) {
  const auto place = op.attributes().integers(field);
  const Mesh& mesh = op.mesh();
  op.require(
      place.size() == 2 && place[0] >= 0 && place[0] < mesh.rows && place[1] >= 0 && place[1] < mesh.columns,
      "a chip is not on the mesh");
  return static_cast<size_t>(place[0] * mesh.columns + place[1]);
}

// The receiver gets the sender's value. The other chips keep their values of `optional_output_tensor`.
// Without this tensor, the library leaves their results undefined; here they are zero.
static void point_to_point(OpBuilder& op) {
  const Slot in = op.in("in");
  const auto kept = op.maybe("optional_output_tensor");
  const size_t sender = chip_at(op, "sender_coord"), receiver = chip_at(op, "receiver_coord");
  const Slot out = op.out();
  for (const Slot slot : {in, kept.value_or(in)})
    op.require(op.spec(slot).shape == op.spec(out).shape && op.spec(slot).dtype == op.spec(out).dtype,
               "operand and result have different shapes or data types");
  op.together(out, in, [=](std::span<Frame> chips) {
    Tensors results;
    for (Frame& chip : chips) results.push_back(kept && chip.here ? chip[*kept] : at::zeros_like(chip[in]));
    results[receiver] = chips[sender][in].clone();
    return results;
  });
}

// For each axis of the mesh, the dimension of a tensor that is split along it; -1 if it is not split.
static std::array<int64_t, 2> split_dims(OpBuilder& op, Slot slot) {
  const auto config = op.attributes().record("mapper_config");
  op.require(config.has_value(), "mapper_config is missing");
  op.require(config->integers("mesh_shape_override").empty(), "mesh_shape_override has no kernel");
  const auto placements = config->records("placements");
  op.require(placements.size() == 2, "there must be a placement for each of the two axes of the mesh");
  std::array<int64_t, 2> dims{-1, -1};
  for (size_t axis = 0; axis < 2; ++axis)
    if (placements[axis].name_in("type") == "Shard") {
      op.require(rank(op, slot) > 0, "a scalar cannot be split");
      dims[axis] = op.dim(placements[axis].integer("dim"), rank(op, slot));
    }
  return dims;
}

// A tensor of the host becomes one of the mesh: each chip gets its part.
static void distribute_tensor(OpBuilder& op) {
  const Slot in = op.in("in");
  const std::array<int64_t, 2> dims = split_dims(op, in);
  const Slot out = op.out();
  const Mesh mesh = op.mesh();
  const std::array<int64_t, 2> sizes{mesh.rows, mesh.columns};
  auto whole = op.spec(out).shape;
  op.require(whole.size() == op.spec(in).shape.size(), "operand and result have different ranks");
  for (size_t axis = 0; axis < 2; ++axis)
    if (dims[axis] >= 0) whole = grown(whole, dims[axis], sizes[axis]);
  op.require(whole == op.spec(in).shape, "the result has another shape");
  op.require_chips();
  op.compute(out, [=](Frame& f) {
    const std::array<int64_t, 2> place{static_cast<int64_t>(f.chip) / mesh.columns,
                                       static_cast<int64_t>(f.chip) % mesh.columns};
    Tensor part = f[in];
    for (size_t axis = 0; axis < 2; ++axis)
      if (dims[axis] >= 0) {
        const int64_t length = part.size(dims[axis]) / sizes[axis];
        part = part.narrow(dims[axis], place[axis] * length, length);
      }
    return part.clone(at::MemoryFormat::Contiguous);
  });
}

// The parts of all chips become one tensor of the host.
static void aggregate_tensor(OpBuilder& op) {
  const Slot in = op.in("in");
  const auto config = op.attributes().record("composer_config");
  op.require(config.has_value(), "composer_config is missing");
  auto dims = config->integers("dims");
  op.require(dims.size() == 2, "there must be a dimension for each of the two axes of the mesh");
  op.require(rank(op, in) > 0, "the operand has no dimensions");
  for (int64_t& dim : dims) dim = op.dim(dim, rank(op, in));
  auto used = config->integers("mesh_shape_override");
  if (used.empty()) used = {op.mesh().rows, op.mesh().columns};
  const int64_t columns = op.mesh().columns;
  op.require(
      used.size() == 2 && (used[0] == op.mesh().rows || used[0] == 1) && (used[1] == columns || used[1] == 1),
      "mesh_shape_override must have all chips of an axis, or one");
  const Slot out = op.out();
  op.require(op.spec(out).shape == grown(grown(op.spec(in).shape, dims[0], used[0]), dims[1], used[1]),
             "the result has another shape");
  op.together(out, in, [=](std::span<Frame> chips) {
    Tensors rows;
    for (int64_t row = 0; row < used[0]; ++row) {
      Tensors parts;
      for (int64_t column = 0; column < used[1]; ++column)
        parts.push_back(chips[static_cast<size_t>(row * columns + column)][in]);
      rows.push_back(at::cat(parts, dims[1]));
    }
    return Tensors(chips.size(), at::cat(rows, dims[0]));
  });
}

// An RMS norm of a tensor whose last dimension is split over the chips of a group. Each chip adds up the
// squares of its elements, and only these sums cross. The library needs memory for them, `stats`.
static void distributed_rms_norm(OpBuilder& op) {
  const Slot in = op.in("input");
  const auto weight = op.maybe("weight"), added = op.maybe("residual");
  op.maybe("stats");
  const auto groups = groups_of(op);
  op.require(rank(op, in) > 0, "the operand has no dimensions");
  const std::vector<int64_t> shape = op.spec(in).shape;
  const int64_t width = shape.back(), whole = width * size_of(groups);
  op.require(!weight || checked_volume(op.spec(*weight).shape) == width,
             "the weight does not have one value per element of the last dimension");
  op.require(!added || op.spec(*added).shape == shape, "residual has another shape than the input");
  const Slot out = op.out();
  op.require(op.spec(out).shape == shape, "the result has another shape");
  TensorSpec rows{.shape = shape, .dtype = DataType::Float32};
  rows.shape.back() = 1;
  const Slot squares = op.planner().new_slot(rows);
  const double epsilon = op.attributes().real("epsilon");
  const auto wide = [=](Frame& f) {
    return added ? f[in].to(at::kFloat) + f[*added].to(at::kFloat) : f[in].to(at::kFloat);
  };
  op.compute(squares, [=](Frame& f) {
    const Tensor x = wide(f);
    return at::sum(x * x, at::IntArrayRef{-1}, true);
  });
  op.together(out, squares, [=](std::span<Frame> chips) {
    Tensors results(chips.size());
    for (const Group& group : groups) {
      const Tensor scale = at::rsqrt(sum_of(of_group(chips, group, squares)) / whole + epsilon);
      for (const size_t chip : group) {
        if (!chips[chip].here) continue;
        results[chip] = wide(chips[chip]) * scale;
        if (weight) results[chip].mul_(chips[chip][*weight].reshape({-1}).to(at::kFloat));
      }
    }
    for (Frame& chip : chips) chip[squares].reset();
    return results;
  });
}

static constexpr Row collective_rows[] = {
    {"AggregateTensorOp", aggregate_tensor},
    {"AllGatherOp", all_gather},
    {"AllReduceOp", all_reduce},
    {"DistributeTensorOp", distribute_tensor},
    {"DistributedRMSNormOp", distributed_rms_norm},
    {"MeshPartitionOp", mesh_partition},
    {"PointToPointOp", point_to_point},
    {"ReduceScatterOp", reduce_scatter},
};
constinit const Table collective_ops = collective_rows;

}  // namespace tt::runtime::kernels
