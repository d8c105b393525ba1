// Attention, and the ops that split and join its heads.
#include <ATen/ExpandUtils.h>

#include "kernels/kernels.h"

namespace tt::runtime::kernels {

namespace {

using Tensor = at::Tensor;
using Ints = std::vector<int64_t>;

struct Attention {
  Slot query, key, value;
  std::optional<Slot> mask, sink;
  bool causal;
  std::optional<double> scale;
  std::optional<int64_t> window;
  std::optional<int64_t>
      width;  // latent attention (MLA) without values: the first features of the keys are the values
};

// A causal mask: 0 for the keys that each query sees, and -inf for the others. A query sees no key after its
// own position. With a window, it sees no key that is `window` or more positions before it.
Tensor causal_mask(int64_t queries, int64_t keys, std::optional<int64_t> window) {
  const Tensor distance = at::arange(queries).unsqueeze(1) + (keys - queries) - at::arange(keys);
  Tensor allowed = distance >= 0;
  if (window) allowed = allowed.logical_and(distance < *window);
  return at::zeros({queries, keys})
      .masked_fill(allowed.logical_not(), -std::numeric_limits<double>::infinity());
}

// Attention whose softmax has one more logit per head, the sink. The sink counts in the sum but has no value.
Tensor with_sink(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const Tensor& sink,
                 double scale) {
  Tensor scores = at::matmul(q.to(at::kFloat), k.to(at::kFloat).transpose(-1, -2)) * scale;
  if (mask.defined()) scores = scores + mask;
  const Tensor extra =
      sink.to(at::kFloat).reshape({1, -1, 1, 1}).expand({scores.size(0), scores.size(1), scores.size(2), 1});
  const Tensor weights = at::softmax(at::cat({scores, extra}, -1), -1).narrow(-1, 0, scores.size(-1));
  return at::matmul(weights, v.to(at::kFloat));
}

// Attention with one query per head, as in decoding. The queries that share a key head are rows of one
// product. So no key or value is repeated; repeating them would copy the whole cache. The mask has one row
// for all heads.
Tensor attend_grouped(const Attention& a, const Tensor& q, const Tensor& k, const Tensor& v,
                      const Tensor& mask) {
  const int64_t groups = q.size(1) / k.size(1);
  std::optional<Tensor> given;
  if (mask.defined()) given = mask.to(q.scalar_type()).expand({mask.size(0), 1, groups, mask.size(3)});
  const Tensor rows = q.reshape({q.size(0), k.size(1), groups, q.size(3)});
  return at::scaled_dot_product_attention(rows, k, v, given, 0.0, false, a.scale)
      .reshape({q.size(0), q.size(1), 1, v.size(3)});
}

Tensor attend(const Attention& a, const Tensor& q, const Tensor& key, const Tensor& value, Tensor mask,
              const Tensor& sink) {
  const int64_t groups = q.size(1) / key.size(1);
  const bool one_row = !mask.defined() || mask.size(1) == 1;
  if (groups > 1 && q.size(2) == 1 && one_row && !a.causal && !sink.defined())
    return attend_grouped(a, q, key, value, mask);
  const Tensor k = groups > 1 ? at::repeat_interleave(key, groups, 1) : key;
  const Tensor v = groups > 1 ? at::repeat_interleave(value, groups, 1) : value;
  const bool own_mask = a.causal && (a.window || sink.defined() || q.size(2) != k.size(2));
  if (own_mask) mask = causal_mask(q.size(2), k.size(2), a.window);
  if (sink.defined()) return with_sink(q, k, v, mask, sink, a.scale.value_or(1.0 / std::sqrt(q.size(-1))));
  if (mask.defined()) mask = mask.to(q.scalar_type());
  const std::optional<Tensor> given = mask.defined() ? std::optional(mask) : std::nullopt;
  return at::scaled_dot_product_attention(q, k, v, given, 0.0, a.causal && !own_mask, a.scale);
}

Attention read_attention(OpBuilder& op, bool latent = false) {
  const auto value = latent ? op.maybe("value") : op.in("value");
  const Attention a{op.in("query"),
                    op.in("key"),
                    value.value_or(op.in("key")),
                    op.maybe("attention_mask"),
                    op.maybe("attention_sink"),
                    op.attributes().flag("is_causal"),
                    op.attributes().maybe_real("scale"),
                    latent ? std::nullopt : op.attributes().maybe_integer("sliding_window_size"),
                    value ? std::nullopt : std::optional(op.attributes().integer("head_dim_v"))};
  op.require(!a.causal || !a.mask, "an attention mask and is_causal exclude each other");
  op.require(a.causal || !a.window, "a sliding window without is_causal has no kernel");
  return a;
}

// `query` is the shape of the query as (batch, heads, length, depth), the order in which attention is
// computed.
void require_shapes(OpBuilder& op, const Attention& a, const Ints& query, const Ints& k, const Ints& v,
                    const Ints& mask) {
  op.require(k.size() == 4 && v.size() == 4, "query, key and value must have four dimensions");
  op.require(k[1] > 0 && query[1] % k[1] == 0,
             "the number of query heads is not a multiple of the number of key heads");
  op.require(k[0] == query[0] && k[3] == query[3], "query and key differ in batch or depth");
  op.require(Ints(v.begin(), v.end() - 1) == Ints(k.begin(), k.end() - 1),
             "key and value differ in batch, heads or length");
  op.require(!a.width || *a.width <= k[3], "head_dim_v is larger than the depth of the keys");
  if (a.mask) {
    const Ints scores{query[0], query[1], query[2], k[2]};
    for (size_t d = 0; d < 4; ++d)
      op.require(mask[d] == 1 || mask[d] == scores[d], "the mask cannot be broadcast to the scores");
  }
}

Tensor values(const Attention& a, const Tensor& given) {
  return a.width ? given.narrow(-1, 0, *a.width) : given;
}

Ints shape_of(OpBuilder& op, std::optional<Slot> slot, const Ints& order) {
  if (!slot) return {};
  const Ints& shape = op.spec(*slot).shape;
  op.require(shape.size() == 4, "the operands of an attention must have four dimensions");
  Ints result;
  for (int64_t d : order) result.push_back(shape[d]);
  return result;
}

}  // namespace

static void prefill(OpBuilder& op, bool latent) {
  const Attention a = read_attention(op, latent);
  const Ints query = shape_of(op, a.query, {0, 1, 2, 3});
  require_shapes(op, a, query, op.spec(a.key).shape, op.spec(a.value).shape,
                 shape_of(op, a.mask, {0, 1, 2, 3}));
  op.require(!a.sink || checked_volume(op.spec(*a.sink).shape) == query[1],
             "the sink must have one value per head");
  const Slot out = op.out();
  op.compute(out, [=](Frame& f) {
    return attend(a, f[a.query], f[a.key], values(a, f[a.value]), value_or_none(f, a.mask),
                  value_or_none(f, a.sink))
        .contiguous();
  });
}

static void attention(OpBuilder& op) { prefill(op, false); }
static void latent_attention(OpBuilder& op) { prefill(op, true); }

// The shape (B, H, S, D) of a cache. A cache in pages is (pages, H, size of a page, D); the pages of each
// user are put one after the other.
static Ints in_order(OpBuilder& op, Slot cache, std::optional<Slot> table) {
  Ints shape = op.spec(cache).shape;
  if (!table) return shape;
  const Ints& pages = op.spec(*table).shape;
  op.require(shape.size() == 4 && pages.size() == 2,
             "key, value and page table need four and two dimensions");
  shape[2] = checked_volume({shape[2], pages[1]});
  shape[0] = pages[0];
  return shape;
}

// Checks that there is a page, and that the page table does not ask for too much memory.
static void require_pages(OpBuilder& op, const Attention& a, Slot table, const Ints& key) {
  op.require(checked_volume(op.spec(a.key).shape) > 0, "there is no page");
  op.require_scratch(2 * checked_volume(key), {a.query, a.key, table});
}

// The first `count` pages of each user, one after the other. A negative number stands for a page that the
// user does not have.
static Tensor gathered(const Tensor& cache, const Tensor& table, int64_t count) {
  const Tensor pages = table.narrow(1, 0, count).to(at::kLong).clamp_min(0);
  return cache.index_select(0, pages.reshape({-1}))
      .reshape({table.size(0), count, cache.size(1), cache.size(2), cache.size(3)})
      .transpose(1, 2)
      .reshape({table.size(0), cache.size(1), count * cache.size(2), cache.size(3)});
}

// The number of pages with keys that a user at these positions sees. Each user has `most` pages.
static int64_t used(const Tensor& positions, int64_t size, int64_t most) {
  return std::min(most, std::max<int64_t>(positions.max().item<int64_t>(), 0) / size + 1);
}

// Attention with one query per user: queries are (1, B, H, D), keys and values (B, H, S, D) or in pages.
static void decode(OpBuilder& op, std::optional<Slot> table, bool latent = false) {
  const Attention a = read_attention(op, latent);
  const Ints query = shape_of(op, a.query, {1, 2, 0, 3});
  const Ints key = in_order(op, a.key, table);
  require_shapes(op, a, query, key, in_order(op, a.value, table), shape_of(op, a.mask, {0, 2, 1, 3}));
  if (table) require_pages(op, a, *table, key);
  const auto position = op.maybe("cur_pos_tensor");
  op.require(position || !a.window, "a sliding window needs cur_pos_tensor");
  op.require(position || !table || !a.causal, "pages need cur_pos_tensor or a mask");
  if (position) {
    const int64_t users = checked_volume(op.spec(*position).shape);
    op.require(users == 1 || users == query[0], "there must be one position per user");
  }
  const Slot out = op.out();
  op.compute(out, [=](Frame& f) {
    const Tensor q = f[a.query].permute({1, 2, 0, 3});
    const int64_t pages =
        table ? (a.causal ? used(f[*position], f[a.key].size(2), f[*table].size(1)) : f[*table].size(1)) : 0;
    const auto all = [&](Slot x) { return table ? gathered(f[x], f[*table], pages) : f[x]; };
    const int64_t keys = table ? pages * f[a.key].size(2) : key[2];
    Tensor mask = a.mask ? f[*a.mask].transpose(1, 2) : Tensor();
    if (a.causal && position) {
      const Tensor current = f[*position].reshape({-1, 1, 1, 1});
      Tensor hidden = at::arange(keys).reshape({1, 1, 1, keys}) > current;
      if (a.window)
        hidden = hidden.logical_or(at::arange(keys).reshape({1, 1, 1, keys}) <= current - *a.window);
      mask = at::zeros(hidden.sizes()).masked_fill(hidden, -std::numeric_limits<double>::infinity());
    }
    Attention plain = a;
    plain.causal = false;
    plain.window.reset();
    const Tensor sink = a.sink ? f[*a.sink].reshape({-1, f[*a.sink].size(-1)}).select(1, 0) : Tensor();
    return attend(plain, q, all(a.key), values(a, all(a.value)), mask, sink)
        .permute({2, 0, 1, 3})
        .contiguous();
  });
}

static void attention_decode(OpBuilder& op) { decode(op, std::nullopt); }
static void paged_attention_decode(OpBuilder& op) { decode(op, op.in("page_table")); }
static void paged_latent_decode(OpBuilder& op) { decode(op, op.in("page_table"), true); }

// Attention of a chunk of a prompt to keys in pages. The op has the position of the chunk's first query. Each
// query sees the keys up to its own position.
static void chunked_attention(OpBuilder& op) {
  const Attention a{op.in("query"),
                    op.in("key"),
                    op.in("value"),
                    {},
                    {},
                    false,
                    op.attributes().maybe_real("scale"),
                    {},
                    {}};
  const Slot table = op.in("page_table"), start = op.in("chunk_start_idx"), out = op.out();
  const Ints query = shape_of(op, a.query, {0, 1, 2, 3});
  const Ints key = in_order(op, a.key, table);
  require_shapes(op, a, query, key, in_order(op, a.value, table), {});
  require_pages(op, a, table, key);
  op.require(checked_volume(op.spec(start).shape) == 1, "there must be one chunk_start_idx");
  op.compute(out, [=](Frame& f) {
    const Tensor rows = (at::arange(query[2]) + f[start].reshape({1}).to(at::kLong)).unsqueeze(1);
    const int64_t size = f[a.key].size(2), pages = query[2] ? used(rows, size, f[table].size(1)) : 1;
    const Tensor hidden = (at::arange(pages * size) > rows).unsqueeze(0).unsqueeze(0);
    const Tensor mask =
        at::zeros(hidden.sizes()).masked_fill(hidden, -std::numeric_limits<double>::infinity());
    const Tensor keys = gathered(f[a.key], f[table], pages);
    return attend(a, f[a.query], keys, gathered(f[a.value], f[table], pages), mask, Tensor()).contiguous();
  });
}

static void split_heads(OpBuilder& op) {
  const Slot source = op.in("in");
  const auto kv = op.maybe("kv_input");
  const int64_t heads = op.attributes().integer("num_heads");
  const int64_t kv_heads = op.attributes().maybe_integer("num_kv_heads").value_or(heads);
  const bool transposed = op.attributes().flag("transpose_key");
  const Slot outs[] = {op.out("q_out"), op.out("k_out"), op.out("v_out")};
  const auto& shape = op.spec(source).shape;
  const int64_t sections = heads + (kv ? 0 : 2 * kv_heads);
  op.require(shape.size() >= 3 && heads > 0 && kv_heads > 0 && shape.back() % sections == 0,
             "the width of the input is not a multiple of the number of heads");
  const int64_t depth = shape.back() / sections, offset = kv ? 0 : heads;
  // The results are views, because attention reads strided heads as fast as contiguous ones.
  const auto part = [=](const Tensor& t, int64_t first, int64_t count) {
    return t.narrow(-1, first * depth, count * depth)
        .reshape({t.size(0), t.size(-2), count, depth})
        .transpose(1, 2);
  };
  op.view(outs[0], source, [=](const Tensor& t) { return part(t, 0, heads); });
  const Slot from = kv.value_or(source);
  op.view(outs[1], from, [=](const Tensor& t) {
    const Tensor key = part(t, offset, kv_heads);
    return transposed ? key.transpose(-1, -2) : key;
  });
  op.view(outs[2], from, [=](const Tensor& t) { return part(t, offset + kv_heads, kv_heads); });
}

static void concatenate_heads(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  op.require(op.spec(source).shape.size() == 4, "the input must be B x H x S x D");
  op.write(out, [=, shape = op.spec(source).shape](Frame& f) {
    f[out].view({shape[0], shape[2], shape[1], shape[3]}).copy_(f[source].transpose(1, 2));
  });
}

static void create_heads_decode(OpBuilder& op) {
  const Slot source = op.in("input");
  const int64_t heads = op.attributes().integer("num_heads");
  const int64_t kv_heads = op.attributes().maybe_integer("num_kv_heads").value_or(heads);
  op.require(!op.reads("batch_offset"), "batch_offset has no kernel");
  const Slot outs[] = {op.out("q_out"), op.out("k_out"), op.out("v_out")};
  const auto& shape = op.spec(source).shape;
  const int64_t sections = heads + 2 * kv_heads;
  op.require(shape.size() == 4 && heads > 0 && kv_heads > 0 && shape[3] % sections == 0,
             "the width of the input is not a multiple of the number of heads");
  const int64_t depth = shape[3] / sections, starts[] = {0, heads, heads + kv_heads};
  for (int i = 0; i < 3; ++i) {
    const int64_t first = starts[i] * depth, count = i == 0 ? heads : kv_heads;
    op.compute(outs[i], [=](Frame& f) {
      return f[source]
          .narrow(3, first, count * depth)
          .reshape({1, f[source].size(2), count, depth})
          .contiguous();
    });
  }
}

static void concatenate_heads_decode(OpBuilder& op) {
  const Slot source = op.in("in"), out = op.out();
  const int64_t heads = op.attributes().integer("num_heads");
  op.require(op.spec(source).shape.size() == 4 && heads <= op.spec(source).shape[2],
             "the input must have four dimensions, and num_heads of its rows");
  op.compute(out, [=](Frame& f) {
    const Tensor& x = f[source];
    return x.narrow(2, 0, heads).reshape({x.size(0), 1, x.size(1), heads * x.size(3)});
  });
}

// x * cosine + rotated * sine, computed in float32; `rotated` is the negated second half of x, followed by
// the first half. The library fills the last tile of the rows. So the result may have more rows than x; these
// are zeros.
static void rotary_embedding(OpBuilder& op) {
  const Slot source = op.in("input"), cosine = op.in("cos_cache"), sine = op.in("sin_cache"), out = op.out();
  const auto index = op.attributes().maybe_integer("token_index");
  const auto &shape = op.spec(source).shape, &cache = op.spec(cosine).shape;
  op.require(shape.size() >= 2 && cache.size() >= 2 && shape.back() % 2 == 0 && op.spec(sine).shape == cache,
             "the input needs an even width, and both caches the same shape of at least two dimensions");
  const int64_t rows = shape[shape.size() - 2], first = index.value_or(0), count = index ? 1 : rows;
  op.require(first + count <= cache[cache.size() - 2], "the caches have too few positions");
  Ints part = cache, made = op.spec(out).shape;
  part[part.size() - 2] = count;
  op.require(at::infer_size(shape, part) == shape, "the caches cannot be broadcast to the input");
  op.require(made.size() == shape.size() && made[made.size() - 2] >= rows, "the result has too few rows");
  const int64_t half = shape.back() / 2, unused = made[made.size() - 2] - rows;
  made[made.size() - 2] = rows;
  op.require(made == shape, "the result differs from the input in more than its number of rows");
  op.write(out, [=](Frame& f) {
    const Tensor x = f[source].to(at::kFloat);
    const Tensor by = f[sine].narrow(-2, first, count).to(at::kFloat);
    Tensor y = x * f[cosine].narrow(-2, first, count).to(at::kFloat);
    y.narrow(-1, 0, half).addcmul_(x.narrow(-1, half, half), by.narrow(-1, 0, half), -1);
    y.narrow(-1, half, half).addcmul_(x.narrow(-1, 0, half), by.narrow(-1, half, half));
    f[out].narrow(-2, 0, rows).copy_(y);
    if (unused) f[out].narrow(-2, rows, unused).zero_();
  });
}

// x * cosine + (x @ matrix) * sine, computed in float32. Each block of 32 columns of x is multiplied by the
// matrix separately.
static void rotary_embedding_by_matrix(OpBuilder& op) {
  const Slot source = op.in("input"), cosine = op.in("cos_cache"), sine = op.in("sin_cache"), out = op.out();
  const Slot matrix = op.in("trans_mat");
  op.require(!op.attributes().flag("is_decode_mode"), "is_decode_mode has no kernel");
  const auto &shape = op.spec(source).shape, &table = op.spec(cosine).shape;
  op.require(op.spec(matrix).shape == Ints{1, 1, 32, 32}, "the matrix must be 1 x 1 x 32 x 32");
  op.require(shape.size() == 4 && shape[3] % 32 == 0,
             "the input must be B x H x S x D, and D a multiple of 32");
  op.require(table.size() == 4 && table[0] == 1 && (table[1] == 1 || table[1] == shape[1]) &&
                 table[2] >= shape[2] && table[3] == shape[3] && op.spec(sine).shape == table,
             "the caches must be (1, 1 or H, at least S, D)");
  const int64_t rows = shape[2];
  op.compute(out, [=](Frame& f) {
    const Tensor x = f[source].to(at::kFloat);
    const Tensor turned =
        x.unflatten(-1, {-1, 32}).matmul(f[matrix].reshape({32, 32}).to(at::kFloat)).view(x.sizes());
    const auto part = [&](Slot cache) { return f[cache].narrow(2, 0, rows).to(at::kFloat); };
    return (x * part(cosine)).addcmul_(turned, part(sine));
  });
}

static constexpr Row attention_rows[] = {
    {"PagedScaledDotProductAttentionDecodeOp", paged_attention_decode},
    {"ChunkedScaledDotProductAttentionOp", chunked_attention},
    {"FlashMlaPrefillOp", latent_attention},
    {"PagedFlashMultiLatentAttentionDecodeOp", paged_latent_decode},
    {"ConcatenateHeadsOp", concatenate_heads},
    {"NLPConcatHeadsDecodeOp", concatenate_heads_decode},
    {"NLPConcatHeadsOp", concatenate_heads},
    {"NLPCreateQKVHeadsDecodeOp", create_heads_decode},
    {"RotaryEmbeddingLlamaOp", rotary_embedding_by_matrix},
    {"RotaryEmbeddingOp", rotary_embedding},
    {"ScaledDotProductAttentionDecodeOp", attention_decode},
    {"ScaledDotProductAttentionOp", attention},
    {"SplitQueryKeyValueAndSplitHeadsOp", split_heads},
};
constinit const Table attention_ops = attention_rows;

}  // namespace tt::runtime::kernels
