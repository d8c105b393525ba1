"""Each op of `torch.ops.tt`: random arguments, and the same computation as loops over users, heads and positions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

Tensor = torch.Tensor


@dataclass(frozen=True)
class Draw:
    """Random numbers, and sizes that depend on the seed."""

    seed: int
    dtype: torch.dtype

    @property
    def users(self) -> int:
        return 1 + self.seed % 3

    @property
    def groups(self) -> int:
        return 1 + self.seed % 2

    def floats(self, *size: int) -> Tensor:
        return torch.randn(size).to(self.dtype)

    def table(self, count: int) -> Tensor:
        """The pages of each user (users, count) in random order. No page belongs to two users."""
        dtype = torch.int64 if self.seed % 2 else torch.int32
        return torch.randperm(self.users * count + 1)[1:].reshape(self.users, count).to(dtype)

    def positions(self, most: int) -> Tensor:
        """A position for each user (users,). In one of three seeds, all are the first position or all the last."""
        chosen = torch.randint(0, most, (self.users,), dtype=torch.int32)
        return chosen if self.seed % 3 else chosen * 0 + (most - 1) * (self.seed % 2)


@dataclass(frozen=True)
class TTOp:
    """`call` is a function of `torch.ops.tt`, `draw` makes its tensors, and `plain` computes the same in loops."""

    name: str
    draw: Callable[[Draw], tuple[Tensor, ...]]
    call: Callable[..., Tensor]
    plain: Callable[..., Tensor]


def attend(q: Tensor, keys: Tensor, values: Tensor, seen: Tensor, scale: float, extra: Any = None, mask: Any = 0.0):
    """Attention of one query (depth,) to the keys (n, depth) for which `seen` (n,) is true.

    `mask` is added to the scores. `extra` is the score of a sink, which has no value.
    """
    scores = (keys.float() @ q.float()) * scale + mask
    weights = torch.exp(scores - scores[seen].max()) * seen
    total = weights.sum() + (0 if extra is None else torch.exp(extra.float() - scores[seen].max()))
    return (weights / total) @ values.float()


def each(q: Tensor, depth: int, one: Callable[[int, int, int], Tensor]) -> Tensor:
    """(users, heads, queries, depth): the result of `one` for each user, head and query."""
    users, heads, length = q.shape[:3]
    out = torch.zeros(users, heads, length, depth)
    for u in range(users):
        for h in range(heads):
            for i in range(length):
                out[u, h, i] = one(u, h, i)
    return out.to(q.dtype)


def pages(cache: Tensor, table: Tensor, u: int) -> Tensor:
    return torch.cat([cache[max(p, 0)] for p in table[u].tolist()], 1)


# --- caches


def update(cache: Tensor, x: Tensor, position: Tensor) -> Tensor:
    out = cache.clone()
    for u in range(x.shape[0]):
        out[1 + u, :, position.item()] = x[u, :, 0]
    return out


def fill(cache: Tensor, x: Tensor) -> Tensor:
    out = cache.clone()
    for u in range(x.shape[0]):
        out[1 + u, :, : x.shape[2]] = x[u]
    return out


def paged_update(cache: Tensor, x: Tensor, positions: Tensor, table: Tensor) -> Tensor:
    out = cache.clone()
    for u, p in enumerate(positions.tolist()):
        if p >= 0:
            out[table[u, p // cache.shape[2]], :, p % cache.shape[2]] = x[0, u, : cache.shape[1]]
    return out


def paged_fill(cache: Tensor, x: Tensor, table: Tensor, user: Tensor | None = None) -> Tensor:
    out = cache.clone()
    for p in range(x.shape[2]):
        page = table[0 if user is None else user.item(), p // cache.shape[2]]
        out[page, :, p % cache.shape[2]] = x[0, :, p]
    return out


def skipping(positions: Tensor) -> Tensor:
    """The positions, but -1 for the first user, so that the op skips this user."""
    return torch.where(torch.arange(len(positions)) == 0, -1, positions)


# --- attention


def prompt(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, window: int = 99, scale: float = 0.0) -> Tensor:
    groups, scale, n = q.shape[1] // k.shape[1], scale or q.shape[3] ** -0.5, torch.arange(k.shape[2])

    def one(u: int, h: int, i: int) -> Tensor:
        seen = torch.ones(len(n), dtype=torch.bool) if mask is not None else (n <= i) & (n > i - window)
        added = 0.0 if mask is None else mask[u, 0, i].float()
        return attend(q[u, h, i], k[u, h // groups], v[u, h // groups], seen, scale, mask=added)

    return each(q, v.shape[3], one)


def decode(q: Tensor, key: Callable[[int], Tensor], value: Callable[[int], Tensor], p: Any, **more: Any) -> Tensor:
    heads, scale = q.shape[2], more.get("scale") or q.shape[3] ** -0.5
    rows = q.permute(1, 2, 0, 3)

    def one(u: int, h: int, _: int) -> Tensor:
        k, v = key(u), value(u)
        n, head = torch.arange(k.shape[1]), h * k.shape[0] // heads
        seen = n <= (p[u] if p is not None else math.inf)
        extra = more["sink"][h, 0] if "sink" in more else None
        mask = more["mask"][u, 0, h].float() if "mask" in more else 0.0
        return attend(rows[u, h, 0], k[head], v[head], seen, scale, extra, mask)

    return each(rows, value(0).shape[2], one).permute(2, 0, 1, 3)


def whole(q: Tensor, k: Tensor, v: Tensor, p: Any, **more: Any) -> Tensor:
    return decode(q, lambda u: k[u], lambda u: v[u], p, **more)


def paged(q: Tensor, k: Tensor, v: Tensor, table: Tensor, p: Any, **more: Any) -> Tensor:
    return decode(q, lambda u: pages(k, table, u), lambda u: pages(v, table, u), p, **more)


def chunk(q: Tensor, k: Tensor, v: Tensor, table: Tensor, start: Tensor) -> Tensor:
    groups = q.shape[1] // k.shape[1]

    def one(u: int, h: int, i: int) -> Tensor:
        keys, values = (pages(x, table, u)[h // groups] for x in (k, v))
        return attend(q[u, h, i], keys, values, torch.arange(len(keys)) <= start.item() + i, q.shape[3] ** -0.5)

    return each(q, v.shape[3], one)


tt = torch.ops.tt


def heads(d: Draw, *length: int, depth: int = 8) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values. Keys and values have two heads, and queries have `d.groups` heads for each of them."""
    q, k = length if len(length) == 2 else (*length, *length)
    return (
        d.floats(d.users, 2 * d.groups, q, depth),
        d.floats(d.users, 2, k, depth),
        d.floats(d.users, 2, k, depth),
    )


def one_query(d: Draw, depth: int = 8) -> Tensor:
    return d.floats(1, d.users, 2 * d.groups, depth)


def in_pages(d: Draw, kv_heads: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    size = (3 * d.users + 1, kv_heads, 4, 8)
    return d.floats(*size), d.floats(*size), d.table(3)


def chosen(d: Draw, *size: int) -> Tensor:
    """Entries of which about half are zero."""
    return torch.where(torch.rand(size) < 0.5, 0.0, torch.randn(size)).to(d.dtype)


def with_experts(a: Tensor, b: Tensor, sparsity: Tensor, own: bool = False) -> Tensor:
    """The product of each block with each expert, or with its `own` one, in loops."""
    blocks, experts = a.shape[0] * (1 if own else a.shape[1]), b.shape[1]
    result, entries = torch.zeros(blocks, experts, a.shape[2], b.shape[3]), sparsity.reshape(blocks, experts)
    for i in range(blocks):
        for e in range(experts):
            x = a[i, e] if own else a.flatten(0, 1)[i]
            result[i, e] = x.float() @ b[0, e].float() if entries[i, e] else 0.0
    size = a.shape[:2] if own else (*a.shape[:2], 1, experts)
    return result.reshape(*size, *result.shape[2:]).to(a.dtype)


OPS = [
    TTOp("update_cache", lambda d: (d.floats(4, 2, 8, 4), d.floats(d.users, 2, 1, 4), d.positions(8)[:1].long()),
         lambda c, x, p: tt.update_cache(c, x, p, 1), update),
    TTOp("fill_cache", lambda d: (d.floats(4, 2, 8, 4), d.floats(d.users, 2, 5 + d.seed % 4, 4)),
         lambda c, x: tt.fill_cache(c, x, batch_offset=1), fill),
    TTOp("paged_update_cache",
         lambda d: (in_pages(d)[0], d.floats(1, d.users, 3, 8), d.positions(12), d.table(3)),
         tt.paged_update_cache, paged_update),
    TTOp("paged_update_cache of some",
         lambda d: (in_pages(d)[0], d.floats(1, d.users, 2, 8), skipping(d.positions(12)), d.table(3)),
         lambda c, x, p, t: tt.paged_update_cache(c, x, p, t, share_cache=False), paged_update),
    TTOp("paged_fill_cache", lambda d: (in_pages(d)[0], d.floats(1, 2, 7 + d.seed % 6, 8), d.table(3)),
         tt.paged_fill_cache, paged_fill),
    TTOp("paged_fill_cache of a user",
         lambda d: (in_pages(d)[0], d.floats(1, 2, 3, 8), d.table(3), torch.tensor([d.users - 1])),
         lambda c, x, t, u: tt.paged_fill_cache(c, x, t, batch_idx=u), paged_fill),
    TTOp("scaled_dot_product_attention", lambda d: heads(d, 7), tt.scaled_dot_product_attention, prompt),
    TTOp("scaled_dot_product_attention in a window", lambda d: heads(d, 7),
         lambda q, k, v: tt.scaled_dot_product_attention(q, k, v, sliding_window_size=3, scale=0.3),
         lambda q, k, v: prompt(q, k, v, window=3, scale=0.3)),
    TTOp("scaled_dot_product_attention with a mask", lambda d: (*heads(d, 5, 9), d.floats(d.users, 1, 5, 9)),
         lambda q, k, v, m: tt.scaled_dot_product_attention(q, k, v, m, is_causal=False), prompt),
    TTOp("scaled_dot_product_attention_decode", lambda d: (one_query(d), *heads(d, 9)[1:], d.positions(9)),
         tt.scaled_dot_product_attention_decode, whole),
    TTOp("scaled_dot_product_attention_decode with a sink",
         lambda d: (one_query(d), *heads(d, 9)[1:], d.positions(9), d.floats(2 * d.groups, 3)),
         lambda q, k, v, p, s: tt.scaled_dot_product_attention_decode(q, k, v, p, attention_sink=s, scale=0.5),
         lambda q, k, v, p, s: whole(q, k, v, p, sink=s, scale=0.5)),
    TTOp("scaled_dot_product_attention_decode with a mask",
         lambda d: (one_query(d), *heads(d, 9)[1:], d.positions(9), d.floats(d.users, 1, 2 * d.groups, 9)),
         lambda q, k, v, p, m: tt.scaled_dot_product_attention_decode(q, k, v, p, m, is_causal=False),
         lambda q, k, v, p, m: whole(q, k, v, None, mask=m)),
    TTOp("paged_scaled_dot_product_attention_decode",
         lambda d: (one_query(d), *in_pages(d), d.positions(12)),
         lambda q, k, v, t, p: tt.paged_scaled_dot_product_attention_decode(q, k, v, t, True, cur_pos_tensor=p), paged),
    TTOp("paged_scaled_dot_product_attention_decode without a page",
         lambda d: (one_query(d), *in_pages(d)[:2], torch.cat([d.table(3)[:, :2], d.table(3)[:, :1] * 0 - 1], 1),
                    d.positions(8)),
         lambda q, k, v, t, p: tt.paged_scaled_dot_product_attention_decode(q, k, v, t, True, cur_pos_tensor=p), paged),
    TTOp("paged_scaled_dot_product_attention_decode with a mask",
         lambda d: (one_query(d), *in_pages(d), d.floats(d.users, 1, 2 * d.groups, 12)),
         lambda q, k, v, t, m: tt.paged_scaled_dot_product_attention_decode(q, k, v, t, attn_mask=m),
         lambda q, k, v, t, m: paged(q, k, v, t, None, mask=m)),
    TTOp("chunked_scaled_dot_product_attention",
         lambda d: (heads(d, 5)[0], *in_pages(d), torch.tensor([d.seed % 7], dtype=torch.int32)),
         tt.chunked_scaled_dot_product_attention, chunk),
    TTOp("flash_mla_prefill", lambda d: (heads(d, 7)[0], heads(d, 7)[1][:, :1].contiguous()),
         lambda q, k: tt.flash_mla_prefill(q, k, 5), lambda q, k: prompt(q, k, k[..., :5])),
    TTOp("flash_mla_prefill with values", lambda d: heads(d, 6), lambda q, k, v: tt.flash_mla_prefill(q, k, 8, v),
         prompt),
    TTOp("paged_flash_mla_decode", lambda d: (one_query(d), *in_pages(d, 1)[::2], d.positions(12)),
         lambda q, k, t, p: tt.paged_flash_mla_decode(q, k, 5, t, cur_pos_tensor=p),
         lambda q, k, t, p: paged(q, k, k[..., :5], t, p)),
    TTOp("paged_flash_mla_decode with values", lambda d: (one_query(d), *in_pages(d), d.positions(12)),
         lambda q, k, v, t, p: tt.paged_flash_mla_decode(q, k, 8, t, v, cur_pos_tensor=p), paged),
    TTOp("sparse_matmul", lambda d: (d.floats(2, d.users, 5, 8), d.floats(1, 4, 8, 6), chosen(d, 2, d.users, 1, 4)),
         tt.sparse_matmul, with_experts),
    TTOp("sparse_matmul of blocks",
         lambda d: (d.floats(d.users, 4, 5, 8), d.floats(1, 4, 8, 6), chosen(d, 1, 1, d.users, 4)),
         lambda a, b, s: tt.sparse_matmul(a, b, s, is_input_a_sparse=True, is_input_b_sparse=False),
         lambda a, b, s: with_experts(a, b, s, True)),
    TTOp("sampling of one candidate",
         lambda d: (d.floats(d.users, 9), torch.randperm(d.users * 9).reshape(-1, 9), torch.ones(d.users).int(),
                    d.floats(d.users), d.floats(d.users).abs()),
         tt.sampling, lambda v, i, *_: torch.stack([row[x.argmax()] for x, row in zip(v, i, strict=True)]).int()),
]  # fmt: skip
