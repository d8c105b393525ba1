"""The forms of each op that the optimizer considers: one function per family of ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch_mlir import ir

from tt_torch.mlir.rules import shape
from tt_torch.mlir.ttnn import sharded
from tt_torch.mlir.ttnn.layout import Layout, layout_of, tiles, with_layout
from tt_torch.mlir.ttnn.optimizer import buffers, convolutions, products
from tt_torch.mlir.ttnn.optimizer.choice import Choice
from tt_torch.mlir.ttnn.optimizer.cores import Cores, largest_part, like

Family = Callable[[ir.Operation, Cores], Iterator[Choice]]


def elementwise(op: ir.Operation, cores: Cores) -> Iterator[Choice]:
    """The result lies as one of the operands of its shape does, and other operands of this shape are moved there."""
    made, extent = layout_of(op.results[0]), tiles(shape(op.results[0]))
    same = [i for i, value in enumerate(op.operands) if tiles(shape(value)) == extent]
    for layout in dict.fromkeys(layout_of(op.operands[i]) for i in same if layout_of(op.operands[i]).sharded):
        moved = {i: like(layout_of(op.operands[i]), layout) for i in same if layout_of(op.operands[i]).sharded}
        yield Choice(like(made, layout), moved, {}, buffers.FEW_TILES)


def norm(op: ir.Operation, cores: Cores) -> Iterator[Choice]:
    """The result lies as the operand does."""
    x, made = op.operands[0], layout_of(op.results[0])
    layout = layout_of(x)
    if not layout.sharded or layout.memory_layout == "HeightSharded" or not sharded.equal_columns(layout, x):
        return
    part = largest_part(tiles(shape(x)), layout.grid)
    yield Choice(like(made, layout), {}, {}, buffers.sharded_norm(op, part, layout.grid[1]))


def softmax(op: ir.Operation, cores: Cores) -> Iterator[Choice]:
    """Each core has whole rows."""
    x, made = op.operands[0], layout_of(op.results[0])
    layout = layout_of(x)
    if layout.memory_layout == "HeightSharded":
        yield Choice(like(made, layout), {}, {}, buffers.softmax(op, cores))


def reshape(op: ir.Operation, cores: Cores) -> Iterator[Choice]:
    """A reshape that leaves all tiles where they are."""
    layout = layout_of(op.operands[0])
    if layout.sharded and sharded.keeps_tiles(op):
        yield Choice(like(layout_of(op.results[0]), layout), {}, {}, buffers.MOVING)


def moves(op: ir.Operation, cores: Cores) -> Iterator[Choice]:
    """A sharded operand and an interleaved result."""
    if layout_of(op.operands[0]).sharded and sharded.whole_tiles(op.operands[0]):
        yield Choice(layout_of(op.results[0]).interleaved(), {}, {}, buffers.MOVING)


FAMILIES: dict[str, Family] = {
    **dict.fromkeys(sharded.ELEMENTWISE, elementwise),
    **dict.fromkeys(sharded.NORMS, norm),
    **dict.fromkeys(sharded.PRODUCTS, products.choices),
    **dict.fromkeys(sharded.MOVES, moves),
    "ttnn.softmax": softmax,
    "ttnn.reshape": reshape,
    "ttnn.conv2d": convolutions.choices,
    "ttnn.max_pool2d": convolutions.pooled,
}
# The products of two tiles on the busiest core of ops of the matrix unit, if the library chooses how to share them.
WHOLE: dict[str, Callable[[ir.Operation, Cores], float]] = {
    **dict.fromkeys(sharded.PRODUCTS, products.whole),
    "ttnn.conv2d": convolutions.whole,
}


def choices(op: ir.Operation, cores: Cores) -> Iterator[Choice]:
    """The forms of an op with tensors that are split over the cores, if it has such forms and one result."""
    family = FAMILIES.get(op.name)
    if family is not None and len(op.results) == 1 and layout_of(op.results[0]).tiled and _has_rows(op):
        yield from family(op, cores)


def _has_rows(op: ir.Operation) -> bool:
    return all(len(shape(v)) > 0 and 0 not in shape(v) for v in (*op.operands, *op.results))


def reads(op: ir.Operation, index: int, layout: Layout, cores: Cores) -> bool:
    """Whether an op has a form in which its operand lies as `layout`. The operand's type is changed for a moment."""
    value = op.operands[index]
    before = value.type
    value.set_type(with_layout(shape(value), layout))
    try:
        return any(choice.operands.get(index, layout) == layout for choice in choices(op, cores))
    finally:
        value.set_type(before)
