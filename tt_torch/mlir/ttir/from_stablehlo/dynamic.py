"""Slices at a position that the program computes. As in StableHLO, a slice that reaches over an end is moved back."""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir

from tt_torch.mlir.rules import Builder, dtype, shape, tensor
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.arranging import look_up
from tt_torch.mlir.ttir.from_stablehlo.creation import full, splat_of
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Op, Value


@RULES.rewrites("stablehlo.dynamic_slice")
def dynamic_slice(op: Op, b: Builder) -> Value:
    """Looks up the elements, one dimension after the other. A slice of 4 from 8 on in 10 elements begins at 6."""
    x, *starts = op.operands
    for dim, count in enumerate(attrs.ints(op, "slice_sizes") or []):
        if count != shape(x)[dim]:
            x = look_up(b, x, dim, _places(b, starts[dim], count, shape(x)[dim]))
    return x


@RULES.rewrites("stablehlo.dynamic_update_slice")
def dynamic_update_slice(op: Op, b: Builder) -> Value:
    x, update, *starts = op.operands
    moving = [d for d, (s, u) in enumerate(zip(shape(x), shape(update), strict=True)) if s != u]
    return written(b, x, update, starts, moving)


def written(b: Builder, x: Value, update: Value, starts: Sequence[Value | None], moving: Sequence[int]) -> Value:
    """Writes `update`, which is smaller than `x` in the dimensions `moving`, by a scatter along the first of these.
    Before that, the part of `x` that the scatter replaces is updated along the other ones."""
    if not moving:
        return update
    dim, *others = moving
    size = shape(x)[:dim] + shape(update)[dim : dim + 1] + shape(x)[dim + 1 :]
    places = _places(b, starts[dim], size[dim], shape(x)[dim])
    if others:
        update = written(b, look_up(b, x, dim, places), update, starts, others)
    index = b("ttir.reshape", places, shape=[s if d == dim else 1 for d, s in enumerate(size)])
    index = b("ttir.broadcast", index, broadcast_dimensions=[1 if d == dim else s for d, s in enumerate(size)])
    return b("ttir.scatter", x, index, update, dim=dim)


def _places(b: Builder, start: Value, count: int, size: int) -> Value:
    """`count` positions from `start` on, within `size`: 4 positions from 8 on within 10 are 6, 7, 8, 9."""
    latest = size - count
    if dtype(start).width < 32:  # the type may be too small for the latest position
        start = b("ttir.typecast", start, dtype=ir.IntegerType.get_signless(32))
    known = splat_of(start)
    if known is None or not 0 <= known <= latest:
        start = b("ttir.maximum", start, full(b, [1], dtype(start), 0))
        start = b("ttir.minimum", start, full(b, [1], dtype(start), latest))
    counted = b("ttir.arange", type=tensor([count], dtype(start)), start=0, end=count, step=1, arange_dimension=0)
    return b("ttir.add", counted, b("ttir.reshape", start, shape=[1]))
