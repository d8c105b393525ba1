"""Rotary embeddings: x * cosine + rotated(x) * sine, with the second half of `rotated` before the first, negated."""

from __future__ import annotations

import math

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, RuleSet, dtype, producer, shape
from tt_torch.mlir.types import Op, Value
from tt_torch.wire.facts import TILE

RULES = RuleSet("fuse-rotary")


@RULES.rewrites("ttir.add")
def rotary_embedding(op: Op, b: Builder) -> Value | None:
    """On (B, H, S, D); one table for all batches and heads, which is all that the op of TTNN takes."""
    plain, turned = (producer(value, "ttir.multiply") for value in op.operands)
    if plain is None or turned is None or not isinstance(dtype(op.results[0]), ir.FloatType):
        return None
    for first, second in ((plain, turned), (turned, plain)):
        for rotated, sine in (second.operands, list(second.operands)[::-1]):
            x = _unrotated(rotated)
            cosine = _other(first, x) if x is not None else None
            if x is None or cosine is None or not (_is_table(cosine, x) and _is_table(sine, x)):
                continue
            sizes = [1, 1, *shape(x)[2:]]
            tables = [b("ttir.reshape", table, shape=sizes) for table in (cosine, sine)]
            return b("ttir.rotary_embedding", x, *tables)
    return None


def _unrotated(value: Value) -> Value | None:
    """x of concat(-x[..., half:], x[..., :half]), for a width of pairs of tiles: otherwise padding would turn."""
    joined = producer(value, "ttir.concat")
    if joined is None or len(shape(value)) != 4 or shape(value)[3] % (2 * TILE) or ods.attr(joined, "dim") % 4 != 3:
        return None
    if len(joined.operands) != 2:
        return None
    minus = producer(joined.operands[0], "ttir.neg")
    high = producer(minus.operands[0], "ttir.slice_static") if minus is not None else None
    low = producer(joined.operands[1], "ttir.slice_static")
    if high is None or low is None or high.operands[0] != low.operands[0]:
        return None
    (x,) = low.operands
    sizes, half = shape(x), shape(x)[3] // 2
    whole = shape(value) == sizes and _is_cut(low, [0, 0, 0, 0], [*sizes[:3], half])
    return x if whole and _is_cut(high, [0, 0, 0, half], sizes) else None


def _is_cut(op: Op, begins: list[int], ends: list[int]) -> bool:
    return [ods.attr(op, name) for name in ("begins", "ends", "step")] == [begins, ends, [1, 1, 1, 1]]


def _other(product: Op, x: Value) -> Value | None:
    """The factor beside `x`."""
    left, right = product.operands
    return right if left == x else left if right == x else None


def _is_table(table: Value, x: Value) -> bool:
    """Whether there is one value for each position and column, and none of its own for a batch or a head."""
    sizes = shape(table)
    return sizes[-2:] == shape(x)[2:] and math.prod(sizes[:-2]) == 1 and dtype(table) == dtype(x)
