"""Sorting and searching: integers, and the positions that come out."""

from __future__ import annotations

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, shape
from tt_torch.mlir.ttnn import legality
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout
from tt_torch.mlir.ttnn.passes.workarounds.movement import gather
from tt_torch.mlir.ttnn.passes.workarounds.registry import (
    full,
    make,
    reshape,
    slices,
    typecast,
    workaround,
)
from tt_torch.mlir.types import Attrs, Op, Value


@workaround("ttnn.argmax")
def argmax_of_integers_and_layout_of_results(op: Op, b: Builder) -> Value | None:
    """Indices have the type UINT32 and row-major layout. For integers, only the last dimension is searched:

    "Only BFLOAT16, FLOAT32 are supported for inputs with TILE layout, got DataType::INT32"
    "ROW_MAJOR: only argmax on the last dim is supported"
    """
    (x,), dim, keep = op.operands, ods.attr(op, "dim"), ods.attr(op, "keep_dim")
    rank = len(shape(x))
    if layout_of(op.results[0]).dtype == "UInt32":
        return None
    last = rank - 1
    if layout_of(x).dtype not in legality.FLOATS and dim % rank != last:
        order = [d for d in range(rank) if d != dim % rank] + [dim % rank]
        x = make(b, "permute", x, permutation=order)
        found = _argmax(b, x, last, False)
        return reshape(b, found, shape(op.results[0]))
    return _argmax(b, x, dim, keep)


def _argmax(b: Builder, x: Value, dim: int, keep: bool) -> Value:
    sizes = shape(x)
    sizes[dim : dim + 1 or None] = [1] if keep else []
    indices = b("ttnn.argmax", x, type=with_layout(sizes, Layout("UInt32", False)), dim=dim, keep_dim=keep)
    return typecast(b, indices, "Int32", tiled=False)


@workaround("ttnn.sort", "ttnn.topk")
def indices_of_orderings(op: Op, b: Builder) -> list[Value] | None:
    """Positions have the type UINT16; for float32 and for long dimensions they have UINT32. The library does not sort
    integers, so they are sorted by their lower 16 bits and then, with a stable sort, by their upper 16 bits.

    "Input tensor data type must be BFLOAT16, UINT16, or FLOAT32, got DataType::INT32"
    "Input tensor must be BFLOAT16, BFLOAT8_B, or FLOAT32, got: DataType::INT32"
    """
    (x,), a = op.operands, ods.attrs_of(op)
    if layout_of(op.results[1]).dtype != "Int32":
        return None
    if legality.takes(op, x):
        values, indices = _ordered(b, op.operation.name, x, shape(op.results[0]), a)
        return [values, typecast(b, indices, "Int32")]
    descending = a["descending" if "descending" in a else "largest"]
    order = _order_of_integers(b, x, a["dim"], descending)
    order = slices(b, order, a["dim"], 0, shape(op.results[0])[a["dim"]])
    return [gather(b, x, order, a["dim"]), order]


def _ordered(b: Builder, name: str, x: Value, sizes: list[int], attributes: Attrs) -> list[Value]:
    index = legality.positions(name, x, attributes["dim"])
    types = [with_layout(sizes, Layout(dtype)) for dtype in (layout_of(x).dtype, index)]
    return b(name, x, type=types, **attributes)


def _order_of_integers(b: Builder, x: Value, dim: int, descending: bool) -> Value:
    attributes = {"dim": dim, "descending": descending, "stable": True}
    low = make(b, "bitwise_and", x, full(b, 0xFFFF, "Int32"))
    high = typecast(b, make(b, "subtract", x, low), "Float32")  # exact: multiples of 2**16
    _, first = _ordered(b, "ttnn.sort", typecast(b, low, "Float32"), shape(x), attributes)
    first = typecast(b, first, "Int32")
    _, second = _ordered(b, "ttnn.sort", gather(b, high, first, dim), shape(x), attributes)
    return gather(b, first, typecast(b, second, "Int32"), dim)
