"""Rows for attention, the splitting and joining of heads, rotary embeddings, and caches."""

import torch
import torch.nn.functional as F
from kernel_rows.row import Row, randn


def attention(q, k, v, mask=None, causal=False, scale=None):
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=scale)


def hidden(where):
    return torch.zeros(where.shape).masked_fill(where, -torch.inf)


def causal(queries, keys, window=99):
    """The mask of the last queries of a sequence."""
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return hidden((distance < 0) | (distance >= window))


def sink(q, k, v, extra, mask=0.0, scale=0.25):
    scores = q @ k.transpose(-1, -2) * scale + mask
    extra = extra.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    return torch.cat([scores, extra], -1).softmax(-1)[..., :-1] @ v


QKV = {"query": randn(2, 4, 9, 16), "key": randn(2, 4, 9, 16) * 2, "value": randn(2, 4, 9, 16) + 1}
GROUPED = QKV | {"key": randn(2, 2, 7, 16), "value": randn(2, 2, 7, 16) + 1}
LONGER = QKV | {"key": randn(2, 4, 12, 16) * 2, "value": randn(2, 4, 12, 16) + 1}
SINK = {"attention_sink": randn(1, 4, 1, 1)}
MASK = {"attention_mask": randn(2, 1, 9, 9)}


def attended(label, operands, expected, **attributes):
    return Row("ScaledDotProductAttentionOp", operands, {"out": (2, 4, 9, 16)}, expected, attributes, label)


def one_query(label, *mask, scale=None):
    """One query for each of four heads, with a mask of this shape. Two query heads share each key head."""
    operands = {"query": randn(2, 4, 1, 16), "key": randn(2, 2, 7, 16), "value": randn(2, 2, 7, 16) + 1}
    operands |= {"attention_mask": randn(*mask)} if mask else {}
    attributes = {} if scale is None else {"scale": scale}
    return Row("ScaledDotProductAttentionOp", operands, {"out": (2, 4, 1, 16)},
               lambda *given: attention(*given, scale=scale), attributes, label)  # fmt: skip


def last(position, window=99):
    """The mask for one query per user at these positions, over eight keys."""
    position, keys = position[:, None, None, None], torch.arange(8)
    return hidden((keys > position) | (keys <= position - window))


def decoded(label, expected, attributes=None, **operands):
    """Attention with one query for each of three users. `expected` takes a query of (user, head, 1, depth)."""
    qkv = {"query": randn(1, 3, 4, 16), "key": randn(3, 4, 8, 16), "value": randn(3, 4, 8, 16) + 1}
    return Row("ScaledDotProductAttentionDecodeOp", qkv | operands, {"out": (1, 3, 4, 16)},
               lambda q, *others: expected(q.permute(1, 2, 0, 3), *others).permute(2, 0, 1, 3), attributes or {},
               label)  # fmt: skip


POSITIONS = {"cur_pos_tensor": torch.tensor([0, 7, 3], dtype=torch.int32)}
DECODED = [
    decoded("grouped", lambda q, k, v, p: attention(q, k, v, last(p)), {"is_causal": True}, **POSITIONS,
            key=randn(3, 2, 8, 16), value=randn(3, 2, 8, 16) + 1),
    decoded("one position", lambda q, k, v, p: attention(q, k, v, last(p)), {"is_causal": True},
            cur_pos_tensor=torch.tensor([5], dtype=torch.int32)),
    decoded("window", lambda q, k, v, p: attention(q, k, v, last(p, 3)), {"is_causal": True, "sliding_window_size": 3},
            **POSITIONS),
    decoded("all keys", lambda q, k, v, p: attention(q, k, v), **POSITIONS),
    decoded("causal, all keys", attention, {"is_causal": True}),
    decoded("scaled", lambda q, k, v: attention(q, k, v, scale=0.5), {"scale": 0.5}),
    decoded("mask", lambda q, k, v, m: attention(q, k, v, m.transpose(1, 2)), attention_mask=randn(3, 1, 4, 8)),
    decoded("sink", lambda q, k, v, s: sink(q, k, v, s[:, 0]), attention_sink=randn(4, 5)),
]  # fmt: skip


def split_heads(x, heads=2, transposed=False):
    q, k, v = (part.transpose(1, 2) for part in x.reshape(2, 5, -1, 16).split([4, heads, heads], 2))
    return q, k.transpose(-1, -2) if transposed else k, v


def split_two(x, kv):
    k, v = kv.reshape(2, 7, 2, 4, 16).permute(2, 0, 3, 1, 4)
    return x.reshape(2, 5, 4, 16).transpose(1, 2), k, v


def rotary(x, cosine, sine):
    half = x.shape[-1] // 2
    return x * cosine + torch.cat([-x[..., half:], x[..., :half]], -1) * sine


def fill_cache(cache, x):
    result = cache.clone()
    result[1:2, :, :5] = x
    return result


def update_cache(cache, x, position):
    result = cache.clone()
    result[1:3, :, position.item()] = x[0].transpose(0, 1)
    return result


PAGES, TABLE = randn(7, 2, 4, 16), torch.tensor([[5, 0], [3, 1], [6, 2]], dtype=torch.int32)


def pages_of(cache, table):
    """The pages of each user, one after the other. The first page stands for a page that a user lacks."""
    return cache[table.long().clamp(min=0)].transpose(1, 2).flatten(2, 3)


def paged_update(cache, x, position, table=None):
    result = cache.clone()
    for user, p in enumerate(position.tolist()):
        if p >= 0:
            page = user if table is None else table[user, p // cache.shape[2]]
            result[page, :, p % cache.shape[2]] = x[0, user, : cache.shape[1]]
    return result


def paged_fill(cache, x, table, users=(0,)):
    result = cache.clone()
    for row, user in enumerate(users):
        for p in range(x.shape[2]):
            result[table[user, p // cache.shape[2]], :, p % cache.shape[2]] = x[row, :, p]
    return result


def numbers(*values):
    return torch.tensor(values, dtype=torch.int32)


def updated(label, cache, operands, expected, **attributes):
    name = "PagedUpdateCacheOp" if "update_index" in operands else "PagedFillCacheOp"
    return Row(name, {"cache": cache} | operands, {}, expected, attributes, label, in_place=("cache",))


IN_PAGES = [
    updated("", PAGES, {"input": randn(1, 3, 2, 16), "update_index": numbers(7, 0, 5), "page_table": TABLE},
            paged_update),
    updated("some users, more heads", PAGES,
            {"input": randn(1, 3, 5, 16), "update_index": numbers(-1, 3, -9), "page_table": TABLE}, paged_update),
    updated("no pages", randn(3, 2, 8, 16), {"input": randn(1, 3, 2, 16), "update_index": numbers(7, -1, 2)},
            paged_update),
    updated("", PAGES, {"input": randn(1, 2, 7, 16), "page_table": TABLE}, paged_fill),
    updated("two users", PAGES,
            {"input": randn(2, 2, 8, 16), "page_table": TABLE, "batch_idx_tensor": numbers(2, 1)}, paged_fill),
    *(Row("PagedScaledDotProductAttentionDecodeOp",
          {"query": randn(1, 3, 4, 16), "key": PAGES, "value": PAGES + 1, "page_table": TABLE} | operands,
          {"out": (1, 3, 4, 16)}, expected, {"is_causal": "cur_pos_tensor" in operands} | attributes, label)
      for label, operands, attributes, expected in [
        ("", {"cur_pos_tensor": numbers(7, 0, 4)}, {}, lambda *given: in_pages(*given)),
        ("short", {"cur_pos_tensor": numbers(2, 0, 3)}, {"scale": 0.5}, lambda *given: in_pages(*given, scale=0.5)),
        ("without a page", {"cur_pos_tensor": numbers(2, 3, 4), "page_table": TABLE * numbers(1, -1)}, {},
         lambda *given: in_pages(*given)),
        ("window", {"cur_pos_tensor": numbers(7, 0, 4)}, {"sliding_window_size": 3},
         lambda *given: in_pages(*given, window=3)),
        ("mask", {"attention_mask": randn(3, 1, 4, 8)}, {},
         lambda q, k, v, t, m: in_pages(q, k, v, t, None, m.transpose(1, 2)))]),
]  # fmt: skip


def in_pages(q, k, v, table, position, mask=None, window=99, scale=None):
    k, v = pages_of(k, table), pages_of(v, table)
    mask = last(position, window) if mask is None else mask
    return attention(q.permute(1, 2, 0, 3), k, v, mask, scale=scale).permute(2, 0, 1, 3)


LATENT = {"query": randn(2, 4, 9, 16), "key": randn(2, 1, 9, 16)}
ONE_LATENT = {"query": randn(1, 3, 4, 16), "key": PAGES[:, :1], "page_table": TABLE, "cur_pos_tensor": numbers(7, 0, 4)}
CHUNK = {"query": randn(3, 4, 3, 16), "key": PAGES, "value": PAGES + 1, "page_table": TABLE}


def chunk(q, k, v, table, start):
    rows = torch.arange(q.shape[2])[:, None] + start
    return attention(q, pages_of(k, table), pages_of(v, table), hidden(torch.arange(8) > rows))


LATENTS = [
    Row("FlashMlaPrefillOp", LATENT, {"out": (2, 4, 9, 5)},
        lambda q, k: attention(q, k, k[..., :5], causal(9, 9)), {"is_causal": True, "head_dim_v": 5}),
    Row("FlashMlaPrefillOp", LATENT | {"value": randn(2, 1, 9, 8), "attention_mask": randn(2, 1, 9, 9)},
        {"out": (2, 4, 9, 8)}, lambda q, k, v, m: attention(q, k, v, m, scale=0.5), {"scale": 0.5, "head_dim_v": 8},
        "values and mask"),
    Row("PagedFlashMultiLatentAttentionDecodeOp", ONE_LATENT, {"out": (1, 3, 4, 5)},
        lambda q, k, t, p: in_pages(q, k, k[..., :5], t, p), {"is_causal": True, "head_dim_v": 5}),
    Row("PagedFlashMultiLatentAttentionDecodeOp", ONE_LATENT | {"value": PAGES[:, 1:]}, {"out": (1, 3, 4, 16)},
        lambda q, k, t, p, v: in_pages(q, k, v, t, p), {"is_causal": True, "head_dim_v": 16}, "values"),
    *(Row("ChunkedScaledDotProductAttentionOp", CHUNK | {"chunk_start_idx": numbers(start)}, {"out": (3, 4, 3, 16)},
          chunk, {}, f"from {start}") for start in (0, 4, 5)),
]  # fmt: skip
ROWS = [
    *IN_PAGES,
    *LATENTS,
    attended("", QKV, attention),
    attended("causal", QKV, lambda q, k, v: attention(q, k, v, causal=True), is_causal=True),
    attended("causal, longer", LONGER, lambda q, k, v: attention(q, k, v, causal(9, 12)), is_causal=True),
    attended("mask", QKV | MASK, attention),
    attended("grouped, scaled", GROUPED, lambda q, k, v: attention(q, k, v, scale=0.5), scale=0.5),
    one_query("one query"),
    one_query("one query, scaled, mask", 2, 1, 1, 7, scale=0.5),
    one_query("one query, mask of all", 1, 1, 1, 7),
    one_query("one query, mask of keys", 2, 1, 1, 1),
    one_query("one query, mask per head", 2, 4, 1, 7),
    attended("window", QKV, lambda q, k, v: attention(q, k, v, causal(9, 9, 3)), is_causal=True, sliding_window_size=3),
    attended("causal sink", QKV | SINK, lambda *qkvs: sink(*qkvs, causal(9, 9)), is_causal=True),
    attended("scaled sink", QKV | SINK, lambda *qkvs: sink(*qkvs, scale=0.5), scale=0.5),
    attended("sink and mask", QKV | MASK | SINK, lambda q, k, v, mask, extra: sink(q, k, v, extra, mask)),
    *DECODED,
    Row(
        "SplitQueryKeyValueAndSplitHeadsOp",
        {"in": randn(2, 5, 128)},
        {"q_out": (2, 4, 5, 16), "k_out": (2, 2, 5, 16), "v_out": (2, 2, 5, 16)},
        split_heads,
        {"num_heads": 4, "num_kv_heads": 2},
    ),
    Row(
        "SplitQueryKeyValueAndSplitHeadsOp",
        {"in": randn(2, 5, 128)},
        {"q_out": (2, 4, 5, 16), "k_out": (2, 2, 16, 5), "v_out": (2, 2, 5, 16)},
        lambda x: split_heads(x, transposed=True),
        {"num_heads": 4, "num_kv_heads": 2, "transpose_key": True},
        "transposed key",
    ),
    Row(
        "SplitQueryKeyValueAndSplitHeadsOp",
        {"in": randn(2, 5, 192)},
        dict.fromkeys(("q_out", "k_out", "v_out"), (2, 4, 5, 16)),
        lambda x: split_heads(x, 4),
        {"num_heads": 4},
        "as many keys",
    ),
    Row(
        "SplitQueryKeyValueAndSplitHeadsOp",
        {"in": randn(2, 5, 64), "kv_input": randn(2, 7, 128)},
        {"q_out": (2, 4, 5, 16), "k_out": (2, 4, 7, 16), "v_out": (2, 4, 7, 16)},
        split_two,
        {"num_heads": 4},
        "kv",
    ),
    Row(
        "ConcatenateHeadsOp",
        {"in": randn(2, 4, 5, 16)},
        {"out": (2, 5, 64)},
        lambda x: x.transpose(1, 2).reshape(2, 5, 64),
    ),
    Row(
        "NLPConcatHeadsOp",
        {"in": randn(2, 4, 5, 16)},
        {"out": (2, 1, 5, 64)},
        lambda x: x.transpose(1, 2).reshape(2, 1, 5, 64),
    ),
    Row(
        "NLPCreateQKVHeadsDecodeOp",
        {"input": randn(1, 1, 3, 128)},
        {"q_out": (1, 3, 4, 16), "k_out": (1, 3, 2, 16), "v_out": (1, 3, 2, 16)},
        lambda x: x.reshape(1, 3, 8, 16).split([4, 2, 2], 2),
        {"num_heads": 4, "num_kv_heads": 2},
    ),
    Row(
        "NLPCreateQKVHeadsDecodeOp",
        {"input": randn(1, 1, 3, 192)},
        dict.fromkeys(("q_out", "k_out", "v_out"), (1, 3, 4, 16)),
        lambda x: x.reshape(1, 3, 12, 16).split(4, 2),
        {"num_heads": 4},
        "as many keys",
    ),
    Row(
        "NLPConcatHeadsDecodeOp",
        {"in": randn(1, 3, 32, 16)},
        {"out": (1, 1, 3, 64)},
        lambda x: x[:, :, :4].reshape(1, 1, 3, 64),
        {"num_heads": 4},
    ),
    Row(
        "RotaryEmbeddingOp",
        {"input": randn(2, 4, 5, 16), "cos_cache": randn(1, 1, 9, 16), "sin_cache": randn(1, 1, 9, 16) + 1},
        {"out": (2, 4, 5, 16)},
        lambda x, c, s: rotary(x, c[:, :, :5], s[:, :, :5]),
    ),
    Row(
        "RotaryEmbeddingOp",
        {"input": randn(2, 4, 5, 16), "cos_cache": randn(1, 1, 9, 16), "sin_cache": randn(1, 1, 9, 16) + 1},
        {"out": (2, 4, 32, 16)},
        lambda x, c, s: F.pad(rotary(x, c[:, :, :5], s[:, :, :5]), (0, 0, 0, 27)),
        {},
        "whole tiles of rows",
    ),
    Row(
        "RotaryEmbeddingOp",
        {"input": randn(1, 2, 4, 16), "cos_cache": randn(1, 1, 9, 16), "sin_cache": randn(1, 1, 9, 16) + 1},
        {"out": (1, 2, 4, 16)},
        lambda x, c, s: rotary(x, c[:, :, 6:7], s[:, :, 6:7]),
        {"token_index": 6},
        "one token",
    ),
    Row(
        "RotaryEmbeddingLlamaOp",
        {
            "input": randn(2, 4, 5, 64),
            "cos_cache": randn(1, 1, 9, 64),
            "sin_cache": randn(1, 1, 9, 64) + 1,
            "trans_mat": randn(1, 1, 32, 32),
        },
        {"out": (2, 4, 5, 64)},
        lambda x, c, s, m: x * c[:, :, :5] + (x.unflatten(-1, (2, 32)) @ m[0, 0]).flatten(-2) * s[:, :, :5],
    ),
    Row(
        "RotaryEmbeddingLlamaOp",
        {
            "input": randn(2, 4, 5, 32),
            "cos_cache": randn(1, 4, 5, 32),
            "sin_cache": randn(1, 4, 5, 32) + 1,
            "trans_mat": randn(1, 1, 32, 32),
        },
        {"out": (2, 4, 5, 32)},
        lambda x, c, s, m: x * c + x @ m[0, 0] * s,
        {},
        "tables of heads",
    ),
    Row(
        "FillCacheOp",
        {"cache": randn(3, 2, 8, 16), "input": randn(1, 2, 5, 16)},
        {},
        fill_cache,
        {"batch_offset": 1},
        in_place=("cache",),
    ),
    Row(
        "UpdateCacheOp",
        {
            "cache": randn(3, 2, 8, 16),
            "input": randn(1, 2, 2, 16),
            "update_index": torch.tensor([6], dtype=torch.int32),
        },
        {},
        update_cache,
        {"batch_offset": 1},
        in_place=("cache",),
    ),
]
