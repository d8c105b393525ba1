"""Rearranging operands before an op: rows of a table, flips, spreading, cropping. Several families use it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from torch_mlir import ir

from tt_torch.mlir.rules import Builder, dtype, shape, tensor
from tt_torch.mlir.ttir.from_stablehlo.creation import EXACT, full, splat_of
from tt_torch.mlir.types import Value

Fill: TypeAlias = float | Value  # a number, or a tensor with one element


def table_of(b: Builder, x: Value, indexed: Sequence[int]) -> tuple[Value, list[int]]:
    """`x` as a table of (rows, columns), and the dimensions that form the columns of a row."""
    rest = [d for d in range(len(shape(x))) if d not in indexed]
    size = shape(x)
    rows, columns = (math.prod(size[d] for d in group) for group in (indexed, rest))
    return b("ttir.reshape", b("ttir.permute", x, permutation=[*indexed, *rest]), shape=[rows, columns]), rest


def part(b: Builder, x: Value, dim: int, start: int, end: int) -> Value:
    """The elements of `x` from `start` to before `end` along `dim`."""
    begins, ends = [0] * len(shape(x)), shape(x)
    begins[dim], ends[dim] = start, end
    return b("ttir.slice_static", x, begins=begins, ends=ends, step=[1] * len(ends))


def look_up(b: Builder, x: Value, dim: int, places: Value) -> Value:
    """The elements of `x` at a vector of places along `dim`."""
    table, rest = table_of(b, x, [dim])
    rows = b("ttir.embedding", places, table)
    rows = b("ttir.reshape", rows, shape=[shape(places)[0], *(shape(x)[d] for d in rest)])
    order = [dim, *rest]
    return b("ttir.permute", rows, permutation=[order.index(d) for d in range(len(order))])


def flip(b: Builder, x: Value, dims: Sequence[int]) -> Value:
    """Reverses the elements along each of `dims`, one dimension after the other."""
    for dim in dims:
        size = shape(x)[dim]
        kind = tensor([size], ir.IntegerType.get_signless(32))
        rows = b("ttir.arange", type=kind, start=size - 1, end=-1, step=-1, arange_dimension=0)
        x = look_up(b, x, dim, rows)
    return x


def spread(b: Builder, x: Value, steps: Sequence[int], value: Fill) -> Value:
    """Puts `value` between neighbouring elements, so that they are `steps` apart in each dimension. With a step of 2
    and the value 0, the elements 1, 2, 3 become 1, 0, 2, 0, 3."""
    for dim, step in enumerate(steps):
        before, size, after = shape(x)[:dim], shape(x)[dim], shape(x)[dim + 1 :]
        if step == 1 or size < 2:
            continue
        x = b("ttir.reshape", x, shape=[*before, size, 1, *after])
        x = padded(b, x, [0] * 2 * (dim + 1) + [0, step - 1] + [0] * 2 * len(after), value)
        x = b("ttir.reshape", x, shape=[*before, size * step, *after])
        x = crop(b, x, [0] * 2 * dim + [0, 1 - step] + [0] * 2 * len(after))
    return x


def padded(b: Builder, x: Value, pairs: Sequence[int], value: Fill) -> Value:
    """Pads with `value`: (low, high) per dimension. The value of `ttir.pad` is a float32. A value that is no constant,
    or an integer that is too large for float32, is put into blocks that are concatenated."""
    value = value if isinstance(value, ir.Value) else full(b, [], dtype(x), value)
    number = splat_of(value)
    if number is not None and (abs(number) <= EXACT or not isinstance(dtype(x), ir.IntegerType)):
        return b("ttir.pad", x, padding=list(pairs), value=float(number))
    for dim in range(len(shape(x))):
        size = shape(x)
        low, high = ([*size[:dim], p, *size[dim + 1 :]] for p in pairs[2 * dim : 2 * dim + 2])
        blocks = [repeated(b, value, sizes) if sizes[dim] else None for sizes in (low, high)]
        parts = [v for v in (blocks[0], x, blocks[1]) if v is not None and shape(v)[dim]]
        x = b("ttir.concat", parts, dim=dim) if len(parts) > 1 else [*parts, x][0]
    return x


def repeated(b: Builder, scalar: Value, sizes: Sequence[int]) -> Value:
    """A tensor of these sizes, in which each element is the only element of `scalar`."""
    if (number := splat_of(scalar)) is not None:
        return full(b, sizes, dtype(scalar), number)
    one = b("ttir.reshape", scalar, shape=[1] * len(sizes))
    return b("ttir.broadcast", one, broadcast_dimensions=list(sizes))


def crop(b: Builder, x: Value, pads: Sequence[int]) -> Value:
    """Removes elements as negative padding does; (low, high) per dimension. Positive padding has no effect here."""
    if min(pads, default=0) >= 0:
        return x
    begins = [max(0, -p) for p in pads[::2]]
    ends = [size - max(0, -p) for size, p in zip(shape(x), pads[1::2], strict=True)]
    return b("ttir.slice_static", x, begins=begins, ends=ends, step=[1] * len(begins))
