"""Rows of the op table: normalization and attention."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from op_rows import (
    IMAGE,
    Row,
    X,
    b1,
    f32,
    positive,
    tensor,
)

QKV = [(2, 3, 6, 8), (2, 3, 7, 8), (2, 3, 7, 8)]
SQUARE = [(2, 3, 6, 8)] * 3
WIDE = [(2, 3, 6, 32), (2, 3, 7, 32), (2, 3, 7, 32)]
sdpa = F.scaled_dot_product_attention


def _of_the_batch(x: torch.Tensor) -> torch.Tensor:
    return F.batch_norm(x, None, None, training=True)


def _batch_norm(training: bool) -> Callable[..., torch.Tensor]:
    return lambda x, mean, var, w, b: F.batch_norm(x, mean, var, w, b, training, 0.2)


def _rotary(half: int) -> Callable[..., torch.Tensor]:
    return lambda x, c, s: x * c + torch.cat([-x[..., half:], x[..., :half]], -1) * s


STATISTICS = [(4,), positive(4), (4,), (4,)]
ZERO_MEAN = [tensor([[[-0.0, 1.0, -1.0]]], f32)]
NORMALIZATION = [
    Row("softmax", lambda x: x.softmax(-1), [X]),
    Row("softmax dim 1", lambda x: F.softmax(x, 1), [X]),
    Row("softmax to float32", lambda x: F.softmax(x, -1, dtype=f32), [X]),
    Row(
        "softmax with -inf",
        lambda x, m: x.masked_fill(m, float("-inf")).softmax(-1),
        [(4, 3), tensor([[True, False, False]] * 4, b1)],
    ),
    Row("log_softmax", lambda x: F.log_softmax(x, 1), [X]),
    Row("softmin", lambda x: F.softmin(x, -1), [X]),
    Row("layer_norm", lambda x, w, b: F.layer_norm(x, (5,), w, b), [X, (5,), (5,)]),
    Row("layer_norm plain", lambda x: F.layer_norm(x, (5,)), [X]),
    Row("layer_norm weight only", lambda x, w: F.layer_norm(x, (5,), w), [X, (5,)]),
    Row("layer_norm two dims", lambda x, w, b: F.layer_norm(x, (3, 5), w, b), [X, (3, 5), (3, 5)]),
    Row("layer_norm eps", lambda x, w, b: F.layer_norm(x, (5,), w, b, 0.1), [X, (5,), (5,)]),
    Row("rms_norm", lambda x, w: F.rms_norm(x, (5,), w), [X, (5,)]),
    Row("rms_norm eps", lambda x, w: F.rms_norm(x, (5,), w, 1e-2), [X, (5,)]),
    Row("rms_norm plain", lambda x: F.rms_norm(x, (5,)), [X]),
    Row(
        "rms_norm as llama",
        lambda x, w: w * (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype),
        [X, (5,)],
    ),
    Row("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), [(2, 4, 3, 5), (4,), (4,)]),
    Row("group_norm plain", lambda x: F.group_norm(x, 2), [(2, 4, 3, 5)]),
    Row("instance_norm", lambda x: F.instance_norm(x), [(2, 4, 3, 5)]),
    Row("batch_norm eval", _batch_norm(False), [IMAGE, *STATISTICS]),
    Row("batch_norm eval rank 2", _batch_norm(False), [(6, 4), *STATISTICS]),
    Row("batch_norm eval rank 3", _batch_norm(False), [(6, 4, 5), *STATISTICS]),
    Row("batch_norm eval plain", lambda x, m, v: F.batch_norm(x, m, v), [IMAGE, (4,), positive(4)]),
    Row("batch_norm train", _batch_norm(True), [IMAGE, *STATISTICS], (f32,)),
    Row("batch_norm train rank 2", _batch_norm(True), [(6, 4), *STATISTICS], (f32,)),
    Row("batch_norm signs of zeros", lambda x: torch.copysign(x + 9, _of_the_batch(x)), ZERO_MEAN, (f32,)),
    Row("instance_norm signs of zeros", lambda x: torch.copysign(x + 9, F.instance_norm(x)), ZERO_MEAN, (f32,)),
    Row("batch_norm train no stats", _of_the_batch, [IMAGE], (f32,)),
]
ATTENTION = [
    Row("sdpa", sdpa, QKV),
    Row("sdpa causal", lambda q, k, v: sdpa(q, k, v, is_causal=True), SQUARE),
    Row("sdpa mask", sdpa, [*QKV, (2, 1, 6, 7)]),
    Row("sdpa mask all heads", sdpa, [*QKV, (2, 3, 6, 7)]),
    Row("sdpa mask rank 2", sdpa, [*QKV, (6, 7)]),
    Row("sdpa boolean mask", sdpa, [*SQUARE, lambda _: torch.ones(6, 6, dtype=b1).tril()]),
    Row("sdpa float32 mask", lambda q, k, v, m: sdpa(q, k, v, m.float()), [*QKV, (2, 1, 6, 7)]),
    Row("sdpa scale", lambda q, k, v: sdpa(q, k, v, scale=0.3), QKV),
    Row("sdpa rank 3", sdpa, [(3, 6, 8), (3, 7, 8), (3, 7, 8)]),
    Row("sdpa grouped", lambda q, k, v: sdpa(q, k, v, enable_gqa=True), [(2, 4, 6, 8), (2, 2, 6, 8), (2, 2, 6, 8)]),
    Row("sdpa value width", sdpa, [(2, 3, 6, 8), (2, 3, 7, 8), (2, 3, 7, 4)]),
    # The library has a fused op for heads of whole tiles, unless a mask is broadcast.
    *(
        Row(f"sdpa wide mask {list(mask)}", sdpa, [*WIDE, mask])
        for mask in [(2, 1, 6, 7), (2, 1, 1, 7), (2, 3, 6, 1), (1, 7)]
    ),
    Row("sdpa wide causal", lambda q, k, v: sdpa(q, k, v, is_causal=True), WIDE),
    Row("attention by hand", lambda q, k, v: (q @ k.transpose(-1, -2) / 8**0.5).softmax(-1) @ v, QKV),
    # The library has an op for pairs of whole tiles, and one for single tiles.
    *(
        Row(f"rotary {2 * half}", _rotary(half), [(2, 3, 6, 2 * half), *[(6, 2 * half)] * 2])
        for half in (4, 16, 32, 48)
    ),
]
