// Ops of training: attention that keeps what its gradient needs, this gradient, and a step of AdamW.
#include "kernels/kernels.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;
using Ints = std::vector<int64_t>;

enum MaskType : int64_t { kNone = 0, kCausal = 1, kGiven = 2 };  // numbers of the wire format

struct Attention {
  Slot query, key, value;
  std::optional<Slot> mask;
  bool causal;
};

Attention read_attention(OpBuilder& op) {
  const int64_t type = op.attributes().integer("mask_type");
  const double dropout = op.attributes().real("dropout_probability");
  const Attention a{op.in("query"), op.in("key"), op.in("value"), op.maybe("attention_mask"),
                    type == kCausal};
  const Ints &q = op.spec(a.query).shape, &k = op.spec(a.key).shape;
  op.require(type >= kNone && type <= kGiven, "mask_type must be 0, 1 or 2");
  op.require(a.mask.has_value() == (type == kGiven), "mask_type 2 and an attention mask belong together");
  op.require(dropout == 0.0, "dropout in attention has no kernel");
  op.require(q.size() == 4 && k.size() == 4 && k == op.spec(a.value).shape,
             "query and key must have four dimensions, and key and value one shape");
  op.require(k[0] == q[0] && k[3] == q[3] && k[1] > 0 && q[1] % k[1] == 0,
             "query and key must agree in batch and depth, and share heads");
  op.require(!a.causal || q[2] == k[2], "a causal mask needs as many keys as queries");
  if (a.mask) {
    const Ints scores{q[0], q[1], q[2], k[2]}, &mask = op.spec(*a.mask).shape;
    op.require(mask.size() == 4, "the attention mask must have four dimensions");
    for (size_t d = 0; d < 4; ++d)
      op.require(mask[d] == 1 || mask[d] == scores[d],
                 "the attention mask cannot be broadcast to the scores");
  }
  op.require_scratch(checked_volume({q[0], q[1], q[2], k[2]}), {a.query, a.key, a.value});
  return a;
}

// A key or value in float32, repeated for each head of queries that shares it.
Tensor for_each_head(const Tensor& x, const Tensor& query) {
  return at::repeat_interleave(x.to(at::kFloat), query.size(1) / x.size(1), 1);
}

Tensor scores_of(const Attention& a, Frame& f) {
  const Tensor& q = f[a.query];
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(3)));
  Tensor scores = at::matmul(q.to(at::kFloat), for_each_head(f[a.key], q).transpose(2, 3)).mul_(scale);
  if (a.mask) scores.add_(f[*a.mask]);
  if (a.causal)
    scores.masked_fill_(at::ones({q.size(2), q.size(2)}, at::kBool).triu(1),
                        -std::numeric_limits<double>::infinity());
  return scores;
}

// The sums over the heads of queries that share a head of keys, in the shape of the key.
Tensor sum_of_heads(const Tensor& gradient, const Tensor& key) {
  return gradient.unflatten(1, {key.size(1), -1}).sum({2});
}

}  // namespace

// The second result has the logarithm of the sum of each row's exponentials.
static void attention_forward(OpBuilder& op) {
  const Attention a = read_attention(op);
  const Slot out = op.out();
  const bool keeps = op.attributes().flag("return_intermediates");
  op.require(keeps == op.reads("intermediates"),
             "return_intermediates and the result intermediates belong together");
  op.compute(out, [=](Frame& f) {
    const Tensor scores = scores_of(a, f);
    f.further = {scores.logsumexp({3}, true)};
    return at::matmul(at::softmax(scores, 3), for_each_head(f[a.value], f[a.query]));
  });
  if (!keeps) return;
  const Slot kept = op.out("intermediates");
  const Ints& q = op.spec(a.query).shape;
  op.require(op.spec(kept).shape == Ints{q[0], q[1], q[2], 1},
             "the result intermediates must be B x H x S x 1");
  op.compute(kept, [=](Frame& f) { return f.further[0]; });
}

static void attention_backward(OpBuilder& op) {
  const Attention a = read_attention(op);
  const Slot gradient = op.in("grad_output"), result = op.in("attn_output"), kept = op.in("intermediates");
  const Ints& q = op.spec(a.query).shape;
  op.require(op.spec(gradient).shape == q && op.spec(result).shape == q,
             "grad_output and attn_output must have the shape of the query");
  op.require(op.spec(kept).shape == Ints{q[0], q[1], q[2], 1},
             "the operand intermediates must be B x H x S x 1");
  op.compute(op.out("grad_query"), [=](Frame& f) {
    const Tensor &query = f[a.query], &key = f[a.key];
    const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(3)));
    const Tensor weights = (scores_of(a, f) - f[kept].to(at::kFloat)).exp_(),
                 above = f[gradient].to(at::kFloat);
    const Tensor of_weights = at::matmul(above, for_each_head(f[a.value], query).transpose(2, 3));
    const Tensor of_rows = (above * f[result]).sum({3}, true);
    const Tensor of_scores = (of_weights - of_rows).mul_(weights).mul_(scale);
    const Tensor of_keys = at::matmul(of_scores.transpose(2, 3), query.to(at::kFloat));
    f.further = {sum_of_heads(of_keys, key), sum_of_heads(at::matmul(weights.transpose(2, 3), above), key)};
    return at::matmul(of_scores, for_each_head(key, query));
  });
  op.compute(op.out("grad_key"), [](Frame& f) { return f.further[0]; });
  op.compute(op.out("grad_value"), [](Frame& f) { return f.further[1]; });
}

// A step in place, as torch.optim.AdamW defines it. With max_exp_avg_sq, the largest second moment so far
// divides (AMSGrad).
static void adamw(OpBuilder& op) {
  const Slot param = op.in("param"), grad = op.in("grad"), first = op.in("exp_avg"),
             second = op.in("exp_avg_sq");
  const auto largest = op.maybe("max_exp_avg_sq");
  for (const Slot slot : {grad, first, second, largest.value_or(second)})
    op.require(op.spec(slot).shape == op.spec(param).shape, "an operand has another shape than param");
  op.require(!op.attributes().flag("stochastic_rounding"), "stochastic_rounding has no kernel");
  const auto number = [&](const char* name) { return op.attributes().real(name); };
  const double rate = number("lr"), beta1 = number("beta1"), beta2 = number("beta2");
  const double left1 = 1.0 - number("beta1_pow"), left2 = 1.0 - number("beta2_pow");
  const double epsilon = number("epsilon"), kept = 1.0 - rate * number("weight_decay");
  op.require(left1 > 0.0 && left2 > 0.0, "beta1_pow and beta2_pow must be less than 1");
  op.update(first, [=](Frame& f) {
    f[first].copy_(f[first].to(at::kFloat) * beta1 + f[grad].to(at::kFloat) * (1.0 - beta1));
  });
  op.update(second, [=](Frame& f) {
    const Tensor g = f[grad].to(at::kFloat);
    f[second].copy_(f[second].to(at::kFloat) * beta2 + g * g * (1.0 - beta2));
  });
  if (largest) op.update(*largest, [=](Frame& f) { f[*largest].copy_(at::maximum(f[*largest], f[second])); });
  op.update(param, [=](Frame& f) {
    const Tensor below = (f[largest.value_or(second)].to(at::kFloat) / left2).sqrt_().add_(epsilon);
    f[param].copy_(f[param].to(at::kFloat) * kept - f[first].to(at::kFloat) * (rate / left1) / below);
  });
}

static constexpr Row training_rows[] = {
    {"AdamWOp", adamw},
    {"SDPABackwardOp", attention_backward},
    {"SDPAForwardOp", attention_forward},
};
constinit const Table training_ops = training_rows;

}  // namespace tt::runtime::kernels
