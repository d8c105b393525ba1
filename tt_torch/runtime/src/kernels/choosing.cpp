// Ops that choose: the next token, the experts of a token, and the keys that a query attends to.
#include "kernels/kernels.h"

namespace tt::runtime::kernels {

using Tensor = at::Tensor;
using Ints = std::vector<int64_t>;

// One of the candidates of each user. The probabilities are the softmax of the values times `temp`, which is
// 1 / temperature. A candidate counts if it is one of the k most likely ones, and if the more likely ones
// have together at most the probability p.
static Tensor sampled(const Tensor& values, const Tensor& k, const Tensor& p, const Tensor& temp,
                      const std::optional<at::Generator>& generator) {
  const auto per_user = [](const Tensor& x, at::ScalarType type) { return x.to(type).reshape({-1, 1}); };
  auto [chances, order] =
      at::softmax(values.to(at::kFloat) * per_user(temp, at::kFloat), 1).sort(true, 1, true);
  const Tensor before = chances.cumsum(1) - chances;
  const Tensor counts =
      (at::arange(values.size(1)) < per_user(k, at::kLong)).logical_and(before <= per_user(p, at::kFloat));
  // The most likely candidate always counts, so that a k of 0 or a negative p leaves one.
  chances = chances.masked_fill(counts.logical_not().index_fill(1, at::zeros({1}, at::kLong), false), 0.0);
  return order.gather(1, at::multinomial(chances, 1, false, generator));
}

static void sampling(OpBuilder& op) {
  const Slot values = op.in("input_values"), indices = op.in("input_indices");
  const Slot k = op.in("k"), p = op.in("p"), temp = op.in("temp"), out = op.out();
  const Ints shape = op.spec(values).shape;
  op.require(shape.size() == 4 && shape[0] == 1 && shape[1] == 1 && shape[3] > 0,
             "the values must be 1 x 1 x users x candidates");
  op.require(op.spec(indices).shape == shape, "values and indices differ in shape");
  for (const Slot slot : {k, p, temp})
    op.require(op.spec(slot).shape == Ints{shape[2]}, "k, p and temp must have one element per user");
  const int64_t seed = op.attributes().maybe_integer("seed").value_or(0);
  op.compute(out, [=](Frame& f) {
    const Ints rows{shape[2], shape[3]};
    const Tensor place = sampled(f[values].reshape(rows), f[k], f[p], f[temp], generator_of(seed));
    return f[indices].to(at::kLong).reshape(rows).gather(1, place).reshape({1, 1, 1, shape[2]});
  });
}

// The k experts with the largest scores, and the softmax of these scores.
static void topk_router(OpBuilder& op) {
  const Slot source = op.in("input"), weight = op.in("weight"), bias = op.in("bias");
  const int64_t k = op.attributes().integer("k"), experts = op.attributes().integer("num_experts");
  const Ints &x = op.spec(source).shape, &w = op.spec(weight).shape;
  op.require(x.size() == 2 && w == Ints{x[1], experts} && op.spec(bias).shape == Ints{x[0], experts},
             "input, weight and bias must be B x hidden, hidden x experts and B x experts");
  op.require(k > 0 && k <= experts, "k must be from 1 to the number of experts");
  op.compute(op.out("expert_indices"), [=](Frame& f) {
    const auto wide = [&](Slot slot) { return f[slot].to(at::kFloat); };
    auto [scores, indices] = (at::matmul(wide(source), wide(weight)) + wide(bias)).topk(k, 1);
    f.further = {at::softmax(scores, 1)};
    return indices;
  });
  op.compute(op.out("expert_weights"), [](Frame& f) { return f.further[0]; });
}

// For each query and key, the sum over the heads of relu(query . key) * weight. A key after the query gets
// -inf. The position of a query is its row plus `chunk_start_idx`. On a mesh, each chip has the rows after
// those of the chip before it, along `cluster_axis` or along both axes.
static void indexer_score(OpBuilder& op) {
  const Slot query = op.in("query"), key = op.in("key"), weights = op.in("weights"), out = op.out();
  const Ints &q = op.spec(query).shape, &k = op.spec(key).shape;
  op.require(q.size() == 4 && q[0] == 1 && k.size() == 4 && k[0] == 1 && k[1] == 1 && k[3] == q[3],
             "the query must be 1 x H x S x D, and the key 1 x 1 x T x D");
  op.require(op.spec(weights).shape == Ints{1, q[1], q[2], 1}, "the weights must be 1 x H x S x 1");
  const auto axis = op.attributes().maybe_integer("cluster_axis");
  op.require(!axis || *axis < 2, "cluster_axis must be 0 or 1");
  if (op.mesh().volume() > 1) op.require_chips();
  const int64_t start = op.attributes().integer("chunk_start_idx");
  op.require_scratch(checked_volume({q[1], q[2], k[2]}), {query, key, weights});
  op.compute(out, [=, columns = op.mesh().columns](Frame& f) {
    const auto wide = [&](Slot slot) { return f[slot].to(at::kFloat); };
    const auto chip = static_cast<int64_t>(f.chip);
    const int64_t part = !axis ? chip : *axis ? chip % columns : chip / columns;
    const Tensor scores = at::matmul(wide(query), wide(key).transpose(2, 3)).relu_().mul_(wide(weights));
    const Tensor rows = at::arange(scores.size(2)).unsqueeze(1) + (start + part * scores.size(2));
    return scores.sum({1}, true).masked_fill_(at::arange(scores.size(3)) > rows,
                                              -std::numeric_limits<double>::infinity());
  });
}

static constexpr Row choosing_rows[] = {
    {"IndexerScoreDsaOp", indexer_score},
    {"SamplingOp", sampling},
    {"TopKRouterGptOp", topk_router},
};
constinit const Table choosing_ops = choosing_rows;

}  // namespace tt::runtime::kernels
