"""Custom calls of tt-xla for attention to caches, which are either whole or in pages.

Queries, keys and values have the shape (B, heads, S, D). For one position per user, the shape is (1, users, heads, D).
A paged cache has the shape (pages, heads, size of a page, D), and a page table of shape (users, n) lists the pages of
each user. Attributes are strings, as tt-xla's front-end writes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch_mlir import ir

from tt_torch.mlir.rules import Builder, dtype, shape, tensor
from tt_torch.mlir.ttir.from_stablehlo.arranging import look_up, part
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.types import Attrs, Results, Value

Expand = Callable[[Builder, list[Value], Attrs], Results]


def _read(b: Builder, cache: Value, table: Value) -> Value:
    """The pages of each user, (users, heads, n * size, D). Missing pages are replaced by the first page."""
    (users, count), (_, heads, size, depth) = shape(table), shape(cache)
    pages = b("ttir.maximum", b("ttir.reshape", table, shape=[users * count]), full(b, [1], dtype(table), 0))
    found = b("ttir.reshape", look_up(b, cache, 0, pages), shape=[users, count, heads, size, depth])
    found = b("ttir.permute", found, permutation=[0, 2, 1, 3, 4])
    return b("ttir.reshape", found, shape=[users, heads, count * size, depth])


def attention(b: Builder, operands: list[Value], a: Attrs) -> Value | None:
    """Attention. A mask is added to the scores, and `is_causal` then has no effect. A sink adds one score per head that
    has no value."""
    flags = a | ({"has_attention_mask": "true"} if len(operands) == 4 and not _is_true(a, "has_attention_sink") else {})
    query, key, value, mask, sink = _named(operands, flags, "query key value attention_mask? attention_sink?")
    causal, window = _is_true(a, "is_causal", "true") and mask is None, a.get("sliding_window_size")
    if causal and (window or sink is not None):
        mask, causal = _visible(b, query, counted(b, [1, 1, shape(query)[2], 1]), shape(key)[2], window), False
    elif window:
        return None
    return _attended(b, query, key, value, mask, sink, _scale(query, a), causal)


def attention_decode(b: Builder, operands: list[Value], a: Attrs) -> Value | None:
    """One query per user, which attends to the keys up to its position."""
    names = "query key value position attention_mask? attention_sink?"
    query, key, value, position, mask, sink = _named(operands, a, names)
    return _decoded(b, query, key, value, position, mask, sink, a)


def paged_attention_decode(b: Builder, operands: list[Value], a: Attrs) -> Value | None:
    """The same for keys and values in pages. It is one op if it has no sink or window (passes/expand_attention.py)."""
    names = "query key value table attention_mask? cur_pos_tensor? attention_sink?"
    query, key, value, table, mask, position, sink = _named(operands, a, names)
    causal = _is_true(a, "is_causal", "true")
    if sink is None and "sliding_window_size" not in a and (position is not None or not causal):
        position = b("ttir.reshape", position, shape=[shape(query)[1]]) if position is not None and causal else None
        given = (query, key, value, table, None if causal else mask, position)
        name = "ttir.paged_scaled_dot_product_attention_decode"
        return b(name, *given, is_causal=causal, scale=_scale(query, a))
    return _decoded(b, query, _read(b, key, table), _read(b, value, table), position, mask, sink, a)


def latent_attention(b: Builder, operands: list[Value], a: Attrs) -> Value:
    """Latent attention (MLA). If no values are given, the first features of the keys are the values."""
    query, key, value, mask = _named(operands, a, "query key value? attention_mask?")
    value = part(b, key, 3, 0, int(a["head_dim_v"])) if value is None else value
    if _is_true(a, "is_causal", "true"):
        hidden = _visible(b, query, counted(b, [1, 1, shape(query)[2], 1]), shape(key)[2])
        mask = hidden if mask is None else b("ttir.add", mask, hidden)
    return _attended(b, query, key, value, mask, None, _scale(query, a))


def paged_latent_attention_decode(b: Builder, operands: list[Value], a: Attrs) -> Value | None:
    names = "query key value? table attention_mask? cur_pos_tensor? attention_sink?"
    query, key, value, table, mask, position, sink = _named(operands, a, names)
    key = _read(b, key, table)
    value = part(b, key, 3, 0, int(a["head_dim_v"])) if value is None else _read(b, value, table)
    return _decoded(b, query, key, value, position, mask, sink, a)


def chunked_attention(b: Builder, operands: list[Value], a: Attrs) -> Value:
    """Attention of a chunk of queries to pages. The position of the first query is given, and each query attends to the
    keys up to its own position."""
    query, key, value, table, start = operands
    rows = b("ttir.add", counted(b, [1, 1, shape(query)[2], 1], dtype(start)), _first(b, start))
    key, value = _read(b, key, table), _read(b, value, table)
    return _attended(b, query, key, value, _visible(b, query, rows, shape(key)[2]), None, _scale(query, a))


def indexer_score(b: Builder, operands: list[Value], a: Attrs) -> Value:
    """The sum over heads of weights * relu(query @ key). Keys have one head, and weights are (B, heads, S, 1). The
    scores of keys after the position of a query are -inf."""
    query, key, weights = operands
    batch, heads, length, depth = shape(query)
    folded = b("ttir.reshape", query, shape=[batch, 1, heads * length, depth])
    scores = b("ttir.relu", b("ttir.matmul", folded, key, transpose_b=True))
    scores = b("ttir.multiply", b("ttir.reshape", scores, shape=[batch, heads, length, shape(key)[2]]), weights)
    rows = counted(b, [1, 1, length, 1])
    rows = b("ttir.add", rows, full(b, [1, 1, 1, 1], dtype(rows), int(a.get("chunk_start_idx", "0"))))
    summed = b("ttir.sum", scores, dim_arg=[1], keep_dim=True)
    return b("ttir.add", summed, _visible(b, query, rows, shape(key)[2]))


def in_steps(b: Builder, operands: list[Value | None], is_causal: bool, scale: float) -> Value | None:
    """Attention to pages: each user's pages are joined to a whole cache, and the queries attend to this cache."""
    query, key, value, table, mask, position = operands
    attributes = {"is_causal": str(is_causal), "scale": repr(scale)}
    return _decoded(b, query, _read(b, key, table), _read(b, value, table), position, mask, None, attributes)


def _decoded(
    b: Builder,
    query: Value,
    key: Value,
    value: Value,
    position: Value | None,
    mask: Value | None,
    sink: Value | None,
    a: Attrs,
) -> Value | None:
    users, heads, depth = shape(query)[1:]
    window = a.get("sliding_window_size")
    if mask is not None:
        mask = b("ttir.permute", mask, permutation=[0, 2, 1, 3])
    if _is_true(a, "is_causal", "true"):
        if position is None:
            return None
        position = b("ttir.reshape", position, shape=[users, 1, 1, 1])
        mask = _visible(b, query, position, shape(key)[2], window)
    elif window:
        return None
    query = b("ttir.reshape", query, shape=[users, heads, 1, depth])
    out = _attended(b, query, key, value, mask, sink, _scale(query, a))
    return b("ttir.reshape", out, shape=[1, users, heads, shape(value)[3]])


def _attended(
    b: Builder,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    sink: Value | None,
    scale: float,
    causal: bool = False,
) -> Value:
    """Attention as one op. With a sink, or if values and keys differ in size, it is several ops, because TTNN's op does
    not take these."""
    if sink is None and shape(key) == shape(value):
        masks = [] if mask is None else [mask]
        op = "ttir.scaled_dot_product_attention"
        return b(op, query, key, value, *masks, is_causal=causal, scale=scale)
    if causal:
        mask = _visible(b, query, counted(b, [1, 1, shape(query)[2], 1]), shape(key)[2])
    heads, keys = shape(query)[1], shape(key)[2]
    key, value = (_repeated(b, v, heads // shape(v)[1]) for v in (key, value))
    scores = b("ttir.matmul", query, key, transpose_b=True)
    scores = b("ttir.multiply", scores, full(b, [1, 1, 1, 1], dtype(query), scale))
    scores = scores if mask is None else b("ttir.add", scores, mask)
    if sink is not None:
        sink = b("ttir.reshape", sink, shape=[heads, math.prod(shape(sink)) // heads])
        column = b("ttir.reshape", part(b, sink, 1, 0, 1), shape=[1, heads, 1, 1])
        size = shape(scores)
        column = b("ttir.broadcast", column, broadcast_dimensions=[size[0], 1, size[2], 1])
        scores = b("ttir.concat", [scores, column], dim=3)
    weights = b("ttir.softmax", scores, dimension=3)
    return b("ttir.matmul", part(b, weights, 3, 0, keys), value)


def _repeated(b: Builder, x: Value, groups: int) -> Value:
    """Repeats each head `groups` times."""
    batch, heads, length, depth = shape(x)
    if groups == 1:
        return x
    x = b("ttir.reshape", x, shape=[batch, heads, 1, length, depth])
    x = b("ttir.broadcast", x, broadcast_dimensions=[1, 1, groups, 1, 1])
    return b("ttir.reshape", x, shape=[batch, heads * groups, length, depth])


def _visible(b: Builder, query: Value, rows: Value, keys: int, window: str | None = None) -> Value:
    """A mask for queries at the positions `rows`, (B or 1, 1, S, 1). It hides keys after the position of the query, and
    keys that are `window` or more positions before it."""
    places = counted(b, [1, 1, 1, keys], dtype(rows))
    seen = b("ttir.le", places, rows)
    if window:
        first = b("ttir.subtract", rows, full(b, [1, 1, 1, 1], dtype(rows), int(window)))
        seen = b("ttir.logical_and", seen, b("ttir.gt", places, first))
    none, hidden = (full(b, shape(seen), dtype(query), v) for v in (0.0, -math.inf))
    return b("ttir.where", seen, none, hidden)


def _named(operands: list[Value], a: Attrs, names: str) -> list[Any]:
    """One operand per name. For a name with a question mark, it is None unless the attribute `has_<name>` is true.

    Raises KeyError if there are more or fewer operands than the attributes say.
    """
    present = [name for name in names.split() if name[-1] != "?" or _is_true(a, f"has_{name[:-1]}")]
    if len(present) != len(operands):
        raise KeyError("has_attention_mask, has_attention_sink and the like for each operand")
    given = dict(zip(present, operands, strict=True))
    return [given.get(name) for name in names.split()]


def counted(b: Builder, size: list[int], element: ir.Type | None = None) -> Value:
    """0, 1, 2, ... along the only dimension whose size is not 1."""
    dim = max(range(len(size)), key=lambda d: size[d])
    kind = tensor(size, element or ir.IntegerType.get_signless(32))
    return b("ttir.arange", type=kind, start=0, end=size[dim], step=1, arange_dimension=dim)


def _first(b: Builder, x: Value) -> Value:
    flat = b("ttir.reshape", x, shape=[math.prod(shape(x))])
    return b("ttir.reshape", part(b, flat, 0, 0, 1), shape=[1, 1, 1, 1])


def _is_true(a: Attrs, name: str, default: str = "false") -> bool:
    return bool(a.get(name, default).lower() == "true")


def _scale(query: Value, a: Attrs) -> float:
    return float(a["scale"]) if "scale" in a else shape(query)[-1] ** -0.5


CALLS: dict[str, Expand] = {
    "tt.chunked_scaled_dot_product_attention": chunked_attention,
    "tt.flash_mla_prefill": latent_attention,
    "tt.indexer_score_dsa": indexer_score,
    "tt.paged_flash_mla_decode": paged_latent_attention_decode,
    "tt.paged_scaled_dot_product_attention_decode": paged_attention_decode,
    "tt.scaled_dot_product_attention": attention,
    "tt.scaled_dot_product_attention_decode": attention_decode,
}
