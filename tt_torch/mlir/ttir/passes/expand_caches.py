"""The ops of caches as other ops of TTIR, for a cache whose old values are still read, or that is no state.

A cache has the shape (B, heads, S, D). A cache in pages has the shape (pages, heads, size of a page, D), and a page
table of shape (users, n) lists the pages of each user.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.ttir.from_stablehlo.arranging import look_up, part
from tt_torch.mlir.ttir.from_stablehlo.attention_calls import counted
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.ttir.from_stablehlo.indexing import updated
from tt_torch.mlir.types import Attrs, Op, Value

Expand = Callable[[Builder, list[Value], Attrs], Value]


def expand(op: Op, b: Builder) -> Value:
    """The new value of the cache, computed as a whole."""
    return EXPANSIONS[op.operation.name](b, list(op.operands), ods.attrs_of(op))


def fill_cache(b: Builder, operands: list[Value], a: Attrs) -> Value:
    """Writes `x`, (b, heads, s, D), to the first positions of a part of the batch."""
    cache, x = operands
    row = a["batch_offset"]
    rows = part(b, cache, 0, row, row + shape(x)[0])
    return _placed(b, cache, 0, row, _placed(b, rows, 2, 0, x))


def update_cache(b: Builder, operands: list[Value], a: Attrs) -> Value:
    """Writes one position, which is the same for all users. `x` is (1, heads, users, D)."""
    cache, x, position = operands
    row, rows = a["batch_offset"], b("ttir.permute", x, permutation=[2, 1, 0, 3])
    index = b("ttir.reshape", position, shape=[1, 1, 1, 1])
    index = b("ttir.broadcast", index, broadcast_dimensions=shape(rows))
    old = part(b, cache, 0, row, row + shape(rows)[0])
    return _placed(b, cache, 0, row, b("ttir.scatter", old, index, rows, dim=2))


def _placed(b: Builder, x: Value, dim: int, start: int, new: Value) -> Value:
    """`x` with `new` instead of its elements along `dim` that begin at `start`."""
    end, size = start + shape(new)[dim], shape(x)[dim]
    before = [part(b, x, dim, 0, start)] if start else []
    after = [part(b, x, dim, end, size)] if end < size else []
    return b("ttir.concat", [*before, new, *after], dim=dim) if before or after else new


def paged_update_cache(b: Builder, operands: list[Value], a: Attrs) -> Value:
    """Writes one position per user, and nothing for a negative position. `x` is (1, users, heads, D).

    The size of a page is a power of two.
    """
    cache, x, position, table = operands
    (_, heads, size, depth), users = shape(cache), shape(x)[1]
    position = b("ttir.reshape", position, shape=[users, 1])
    valid = b("ttir.ge", position, _number(b, position, 0))
    position = b("ttir.maximum", position, _number(b, position, 0))
    page = b("ttir.logical_right_shift", position, _number(b, position, size.bit_length() - 1))
    inside = b("ttir.bitwise_and", position, _number(b, position, size - 1))
    rows = _rows(b, b("ttir.gather", table, page, dim=1), inside, size)
    return _paged(b, cache, b("ttir.reshape", x, shape=[users, heads * depth]), rows, valid)


def paged_fill_cache(b: Builder, operands: list[Value], a: Attrs) -> Value:
    """Writes `x`, (1, heads, S, D), to the first positions of one user; the default is the first user."""
    cache, x, table, *user = operands
    (_, heads, size, depth), length = shape(cache), shape(x)[2]
    pages = look_up(b, table, 0, user[0]) if user else part(b, table, 0, 0, 1)
    pages = part(b, pages, 1, 0, -(-length // size))
    pages = b("ttir.reshape", pages, shape=[shape(pages)[1], 1])
    rows = _rows(b, pages, counted(b, [1, size], dtype(table)), size)
    rows = part(b, b("ttir.reshape", rows, shape=[math.prod(shape(rows)), 1]), 0, 0, length)
    source = b("ttir.permute", x, permutation=[2, 0, 1, 3])
    return _paged(b, cache, b("ttir.reshape", source, shape=[length, heads * depth]), rows, None)


def _rows(b: Builder, pages: Value, inside: Value, size: int) -> Value:
    """Row numbers of positions, if the positions of all pages are numbered one page after the other."""
    return b("ttir.add", b("ttir.multiply", pages, _number(b, pages, size)), inside)


def _paged(b: Builder, cache: Value, source: Value, rows: Value, valid: Value | None) -> Value:
    pages, heads, size, depth = shape(cache)
    table = b("ttir.permute", cache, permutation=[0, 2, 1, 3])
    table = b("ttir.reshape", table, shape=[pages * size, heads * depth])
    table = updated(b, table, source, "Invalid", b("ttir.reshape", rows, shape=[shape(rows)[0]]), valid)
    return b("ttir.permute", b("ttir.reshape", table, shape=[pages, size, heads, depth]), permutation=[0, 2, 1, 3])


def _number(b: Builder, like: Value, value: int) -> Value:
    return full(b, [1] * len(shape(like)), dtype(like), value)


EXPANSIONS: dict[str, Expand] = {
    "ttir.fill_cache": fill_cache,
    "ttir.paged_fill_cache": paged_fill_cache,
    "ttir.paged_update_cache": paged_update_cache,
    "ttir.update_cache": update_cache,
}
