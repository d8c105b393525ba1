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

static void fill_cache(OpBuilder& op) {
  const Slot cache = op.in("cache"), source = op.in("input");
  const int64_t row = op.attributes().integer("batch_offset");
  op.require(op.spec(cache).shape.size() == 4 && op.spec(source).shape.size() == 4,
             "caches have four dimensions");
  op.update(cache, [=](Frame& f) {
    f[cache].narrow(0, row, f[source].size(0)).narrow(2, 0, f[source].size(2)).copy_(f[source]);
  });
}

static void update_cache(OpBuilder& op) {
  const Slot cache = op.in("cache"), source = op.in("input"), position = op.in("update_index");
  const int64_t row = op.attributes().integer("batch_offset");
  op.require(op.spec(cache).shape.size() == 4 && op.spec(source).shape.size() == 4,
             "caches have four dimensions");
  op.update(cache, [=](Frame& f) {
    // (1, H, users, D) becomes (users, H, 1, D): one row of the cache per user.
    const Tensor rows = f[source].permute({2, 1, 0, 3});
    f[cache]
        .narrow(0, row, rows.size(0))
        .narrow(2, f[position].reshape({-1})[0].item<int64_t>(), 1)
        .copy_(rows);
  });
}

static constexpr Row ops[] = {
    {"EmbeddingBackwardOp", embedding_backward},
    {"EmbeddingOp", embedding},
    {"FillCacheOp", fill_cache},
    {"GatherOp", gather},
    {"ScatterOp", scatter},
    {"UpdateCacheOp", update_cache},
};
constinit const Table indexing_ops = ops;

}  // namespace tt::runtime::kernels
