"""Custom calls of tt-xla for caches, either whole or in pages: each is an op of TTIR (passes/update_states.py)."""

from __future__ import annotations

from tt_torch.mlir.rules import Builder, shape
from tt_torch.mlir.ttir.from_stablehlo.arranging import part
from tt_torch.mlir.types import Attrs, Value


def fill_cache(b: Builder, operands: list[Value], a: Attrs) -> Value:
    return b("ttir.fill_cache", *operands, batch_offset=int(a["batch_offset"]))


def update_cache(b: Builder, operands: list[Value], a: Attrs) -> Value | None:
    """The new entries are (1, heads, users, D) or (users, heads, 1, D)."""
    cache, x, position = operands
    if shape(x)[0] > 1:
        if shape(x)[2] != 1:
            return None
        x = b("ttir.permute", x, permutation=[2, 1, 0, 3])
    position = position if shape(position) == [1] else b("ttir.reshape", position, shape=[1])
    return b("ttir.update_cache", cache, x, position, batch_offset=int(a["batch_offset"]))


def paged_update_cache(b: Builder, operands: list[Value], a: Attrs) -> Value | None:
    """The new entries are (1, users, at least the heads of the cache, D)."""
    cache, x, position, table = operands
    if a.get("share_cache", "false").lower() == "true":
        return None
    heads, size = shape(cache)[1:3]
    if size < 1 or size & (size - 1):
        return None  # the page of a position is found by a shift
    x = x if shape(x)[2] == heads else part(b, x, 2, 0, heads)
    return b("ttir.paged_update_cache", cache, x, b("ttir.reshape", position, shape=[shape(x)[1]]), table)


def paged_fill_cache(b: Builder, operands: list[Value], a: Attrs) -> Value | None:
    """The new entries are (1, heads, S, D). They are the first user's, unless an operand has the number of a user."""
    cache, x, table, *user = operands
    if shape(x)[0] != 1:
        return None
    return b("ttir.paged_fill_cache", cache, x, table, *[b("ttir.reshape", u, shape=[1]) for u in user])


CALLS = {
    "tt.fill_cache": fill_cache,
    "tt.paged_fill_cache": paged_fill_cache,
    "tt.paged_update_cache": paged_update_cache,
    "tt.update_cache": update_cache,
}
