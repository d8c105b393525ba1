"""Rows for attention, the splitting and joining of heads, rotary embeddings, and caches."""

import torch
import torch.nn.functional as F
from kernel_rows.row import Row, randn


def attention(q, k, v, mask=None, causal=False, scale=None):
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=scale)


def window(q, k, v):
    distance = torch.arange(9)[:, None] - torch.arange(9)
    return attention(q, k, v, torch.zeros(9, 9).masked_fill((distance < 0) | (distance >= 3), -torch.inf))


def sink(q, k, v, extra):
    scores = q @ k.transpose(-1, -2) / 4 + torch.triu(torch.full((9, 9), -torch.inf), 1)
    return torch.cat([scores, extra.expand(2, 4, 9, 1)], -1).softmax(-1)[..., :-1] @ v


QKV = {"query": randn(2, 4, 9, 16), "key": randn(2, 4, 9, 16) * 2, "value": randn(2, 4, 9, 16) + 1}
GROUPED = QKV | {"key": randn(2, 2, 7, 16), "value": randn(2, 2, 7, 16) + 1}


def decode_attention(q, k, v, position):
    mask = torch.zeros(3, 1, 1, 8).masked_fill(torch.arange(8) > position[:, None, None, None], -torch.inf)
    return attention(q.permute(1, 2, 0, 3), k, v, mask).permute(2, 0, 1, 3)


def split_heads(x, transposed=False):
    q, k, v = (part.transpose(1, 2) for part in x.reshape(2, 5, 8, 16).split([4, 2, 2], 2))
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


ROWS = [
    Row("ScaledDotProductAttentionOp", QKV, {"out": (2, 4, 9, 16)}, attention),
    Row(
        "ScaledDotProductAttentionOp",
        QKV,
        {"out": (2, 4, 9, 16)},
        lambda q, k, v: attention(q, k, v, causal=True),
        {"is_causal": True},
        "causal",
    ),
    Row(
        "ScaledDotProductAttentionOp",
        QKV | {"attention_mask": randn(2, 1, 9, 9)},
        {"out": (2, 4, 9, 16)},
        attention,
        {},
        "mask",
    ),
    Row(
        "ScaledDotProductAttentionOp",
        GROUPED,
        {"out": (2, 4, 9, 16)},
        lambda q, k, v: attention(q, k, v, scale=0.5),
        {"scale": 0.5},
        "grouped, scaled",
    ),
    Row(
        "ScaledDotProductAttentionOp",
        QKV,
        {"out": (2, 4, 9, 16)},
        window,
        {"is_causal": True, "sliding_window_size": 3},
        "window",
    ),
    Row(
        "ScaledDotProductAttentionOp",
        QKV | {"attention_sink": randn(1, 4, 1, 1)},
        {"out": (2, 4, 9, 16)},
        sink,
        {"is_causal": True},
        "sink",
    ),
    Row(
        "ScaledDotProductAttentionDecodeOp",
        {
            "query": randn(1, 3, 4, 16),
            "key": randn(3, 2, 8, 16),
            "value": randn(3, 2, 8, 16) + 1,
            "cur_pos_tensor": torch.tensor([0, 7, 3], dtype=torch.int32),
        },
        {"out": (1, 3, 4, 16)},
        decode_attention,
        {"is_causal": True},
    ),
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
        lambda x: split_heads(x, True),
        {"num_heads": 4, "num_kv_heads": 2, "transpose_key": True},
        "transposed key",
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
        {"input": randn(1, 2, 4, 16), "cos_cache": randn(1, 1, 9, 16), "sin_cache": randn(1, 1, 9, 16) + 1},
        {"out": (1, 2, 4, 16)},
        lambda x, c, s: rotary(x, c[:, :, 6:7], s[:, :, 6:7]),
        {"token_index": 6},
        "one token",
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
