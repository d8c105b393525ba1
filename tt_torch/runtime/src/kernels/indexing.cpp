// Ops that read and write by index.
#include "kernels/kernels.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;

Tensor indices(Frame& f, Slot slot) { return f[slot].to(at::kLong); }

// The names of reductions in PyTorch; null if the new values replace the old ones.
constexpr wire::Named<const char*> scatter_reductions[] = {
    {"Sum", "sum"}, {"Max", "amax"}, {"Min", "amin"}, {"Prod", "prod"}, {"Invalid", nullptr}};

int64_t checked_dim(OpBuilder& op, Slot slot) {
  const auto rank = static_cast<int64_t>(op.spec(slot).shape.size());
  op.require(rank > 0, "a scalar has no dimension to index");
  return op.dim(op.attributes().integer("dim"), rank);
}

}  // namespace

static void gather(OpBuilder& op) {
  const Slot source = op.in("input"), index = op.in("index"), out = op.out();
  const int64_t dim = checked_dim(op, source);
  op.compute(out, [=](Frame& f) { return at::gather(f[source], dim, indices(f, index)); });
}

static void scatter(OpBuilder& op) {
  const Slot source = op.in("input"), index = op.in("index"), update = op.in("source"), out = op.out();
  const int64_t dim = checked_dim(op, source);
  const char* reduce = op.attributes().choose("scatter_reduce_type", scatter_reductions);
  op.compute(out, [=](Frame& f) {
    const Tensor values = f[update].to(f[source].scalar_type());
    if (!reduce) return at::scatter(f[source], dim, indices(f, index), values);
    return at::scatter_reduce(f[source], dim, indices(f, index), values, reduce);
  });
}

static void embedding(OpBuilder& op) {
  const Slot index = op.in("input"), table = op.in("weight"), out = op.out();
  op.require(!op.spec(table).shape.empty(), "the weight must have at least one dimension");
  op.require(checked_volume(op.spec(out).shape) ==
                 checked_volume({checked_volume(op.spec(index).shape), op.spec(table).shape.back()}),
             "the result does not have a row per index");
  op.compute(out, [=, shape = op.spec(out).shape](Frame& f) {
    const Tensor rows = f[table].reshape({-1, f[table].size(-1)});
    return at::embedding(rows, indices(f, index)).reshape(shape);
  });
}

static void embedding_backward(OpBuilder& op) {
  const Slot index = op.in("input"), table = op.in("weight"), grad = op.in("in_grad"), out = op.out();
  op.require(op.spec(table).shape.size() >= 2, "the weight must have at least two dimensions");
  const int64_t rows = op.spec(table).shape[op.spec(table).shape.size() - 2];
  op.require(!op.spec(grad).shape.empty() &&
                 checked_volume({rows, op.spec(grad).shape.back()}) == checked_volume(op.spec(out).shape),
             "the result does not have a row per row of the table");
  op.compute(out, [=, shape = op.spec(out).shape](Frame& f) {
    const Tensor flat = f[grad].reshape({-1, f[grad].size(-1)}).to(at::kFloat);
    return at::zeros({rows, flat.size(1)}).index_add(0, indices(f, index).reshape({-1}), flat).reshape(shape);
  });
}

namespace {

// What RowsGatherOp and RowsScatterOp share. Each batch of `in` is a list of rows, which are numbered like
// the cells of a grid of the sizes `sizes`. `index` (batch x rank of the grid x blocks) has the first cell of
// each block. If the batch of `index` is 1, it is for all batches. A block has the sizes `windows`. With
// `column`, a row is a single element.
struct Blocks {
  int64_t batch, blocks, rows, width;  // rows per batch, elements per row
  std::vector<int64_t> sizes, strides, windows;
  int64_t block_rows;
};

Blocks read_blocks(OpBuilder& op, Slot source, Slot index, Slot rows) {
  const auto &whole = op.spec(source).shape, &starts = op.spec(index).shape;
  Blocks b{0, 0, 0, 1, op.attributes().integers("sizes"), {}, op.attributes().integers("windows"), 0};
  op.require(!whole.empty() && starts.size() == 3 && !b.sizes.empty() && b.sizes.size() == b.windows.size() &&
                 starts[1] == static_cast<int64_t>(b.sizes.size()) &&
                 (starts[0] == whole[0] || starts[0] == 1),
             "index must have a start per batch, dimension and block");
  for (size_t d = 0; d < b.sizes.size(); ++d)
    op.require(b.windows[d] > 0 && b.windows[d] <= b.sizes[d], "a block is empty or larger than the grid");
  b.batch = whole[0], b.blocks = starts[2];
  b.rows = checked_volume(b.sizes), b.block_rows = checked_volume(b.windows);
  if (!op.attributes().flag("column"))
    b.width = checked_volume(whole) / std::max<int64_t>(checked_volume({b.batch, b.rows}), 1);
  op.require(checked_volume(whole) == checked_volume({b.batch, b.rows, b.width}),
             "the sizes are not those of the input");
  op.require(
      checked_volume(op.spec(rows).shape) == checked_volume({b.batch, b.blocks, b.block_rows, b.width}),
      "there is not a row per index and cell of a block");
  op.require_scratch(checked_volume({b.batch, starts[1], b.blocks, b.block_rows}), {source, index, rows});
  b.strides.assign(b.sizes.size(), 1);
  for (size_t d = b.sizes.size() - 1; d > 0; --d) b.strides[d - 1] = b.strides[d] * b.sizes[d];
  return b;
}

// The grid's coordinate `d` of each row of each block: batch x blocks x rows of a block.
Tensor coordinates(const Blocks& b, const Tensor& starts, size_t d) {
  int64_t inner = 1;
  for (size_t i = d + 1; i < b.windows.size(); ++i) inner *= b.windows[i];
  const Tensor steps = at::arange(b.block_rows).floor_divide(inner).remainder(b.windows[d]);
  return starts.select(1, static_cast<int64_t>(d)).unsqueeze(-1) + steps;
}

// The numbers of rows as an index for gather and scatter, which need one number per element.
Tensor per_element(const Blocks& b, const Tensor& rows) {
  return rows.reshape({rows.size(0), b.blocks * b.block_rows, 1}).expand({b.batch, -1, b.width});
}

}  // namespace

// A block that would leave the grid is moved into it, as in StableHLO's gather.
static void rows_gather(OpBuilder& op) {
  const Slot source = op.in("in"), index = op.in("index"), out = op.out();
  const Blocks b = read_blocks(op, source, index, out);
  op.compute(out, [=, shape = op.spec(out).shape](Frame& f) {
    Tensor starts = indices(f, index).clone(), rows = at::zeros({1}, at::kLong);
    for (size_t d = 0; d < b.sizes.size(); ++d) {
      starts.select(1, static_cast<int64_t>(d)).clamp_(0, b.sizes[d] - b.windows[d]);
      rows = rows + coordinates(b, starts, d) * b.strides[d];
    }
    const Tensor flat = f[source].reshape({b.batch, b.rows, b.width});
    return at::gather(flat, 1, per_element(b, rows)).reshape(shape);
  });
}

// Rows outside of the grid are left out, as in StableHLO's scatter: they go to one more row, which is cut
// off.
static void rows_scatter(OpBuilder& op) {
  const Slot source = op.in("in"), index = op.in("index"), update = op.in("source"), out = op.out();
  const Blocks b = read_blocks(op, source, index, update);
  const char* reduce = op.attributes().choose("reduce_type", scatter_reductions);
  op.compute(out, [=, shape = op.spec(out).shape](Frame& f) {
    Tensor rows = at::zeros({1}, at::kLong), outside = at::zeros({1}, at::kBool);
    for (size_t d = 0; d < b.sizes.size(); ++d) {
      const Tensor cell = coordinates(b, indices(f, index), d);
      rows = rows + cell * b.strides[d];
      outside = outside.logical_or(cell < 0).logical_or(cell >= b.sizes[d]);
    }
    const Tensor where = per_element(b, rows.masked_fill(outside, b.rows));
    const Tensor flat = at::constant_pad_nd(f[source].reshape({b.batch, b.rows, b.width}), {0, 0, 0, 1});
    const Tensor values = f[update].reshape(where.sizes()).to(flat.scalar_type());
    const Tensor result =
        reduce ? at::scatter_reduce(flat, 1, where, values, reduce) : at::scatter(flat, 1, where, values);
    return result.narrow(1, 0, b.rows).reshape(shape);
  });
}

static constexpr Row indexing_rows[] = {
    {"EmbeddingBackwardOp", embedding_backward},
    {"EmbeddingOp", embedding},
    {"GatherOp", gather},
    {"RowsGatherOp", rows_gather},
    {"RowsScatterOp", rows_scatter},
    {"ScatterOp", scatter},
};
constinit const Table indexing_ops = indexing_rows;

}  // namespace tt::runtime::kernels
