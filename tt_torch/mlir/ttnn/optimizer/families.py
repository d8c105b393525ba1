"""The forms of each op that the optimizer considers: one function per family of ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch_mlir import ir

from tt_torch.mlir.rules import shape
from tt_torch.mlir.ttnn import sharded
from tt_torch.mlir.ttnn.layout import Layout, layout_of, tiles
from tt_torch.mlir.ttnn.optimizer import buffers, convolutions, products
from tt_torch.mlir.ttnn.optimizer.choice import Choice, lying
from tt_torch.mlir.ttnn.optimizer.cores import Cores, largest_part, like
from tt_torch.mlir.ttnn.optimizer.overriding import NOTHING, layouts
from tt_torch.overrides import Asked

Family = Callable[[ir.Operation, Cores, Asked], Iterator[Choice]]


def elementwise(op: ir.Operation, cores: Cores, wanted: Asked) -> Iterator[Choice]:
    """The result gets the place of one of the operands of its shape. Other operands of this shape are moved there if
    they are split in another way. A single operand always has the place of the result."""
    made, extent = layout_of(op.results[0]), tiles(shape(op.results[0]))
    same = [i for i, value in enumerate(op.operands) if tiles(shape(value)) == extent]
    split = [i for i in same if layout_of(op.operands[i]).sharded]
    single = [0] if op.name in sharded.ONE_OPERAND else []
    found = [layout_of(op.operands[i]) for i in split] + layouts(wanted, made, shape(op.results[0]), cores)
    for layout in dict.fromkeys(like(made, layout) for layout in found):
        moved = {i: like(layout_of(op.operands[i]), layout) for i in (*split, *single, *wanted.moved) if i in same}
        yield Choice(layout, moved, {}, buffers.elementwise(op, cores))


def _as_operand(op: ir.Operation, cores: Cores, wanted: Asked) -> Iterator[tuple[Layout, dict[int, Layout]]]:
    """Layouts of the result. The first operand has the same place, and its layout comes with each of them."""
    x, made = layout_of(op.operands[0]), layout_of(op.results[0])
    for layout in dict.fromkeys([x, *layouts(wanted, x, shape(op.operands[0]), cores)]):
        if layout.sharded:
            yield like(made, layout), {0: layout}


def norm(op: ir.Operation, cores: Cores, wanted: Asked) -> Iterator[Choice]:
    """The result lies as the operand does."""
    for layout, operands in _as_operand(op, cores, wanted):
        if layout.memory_layout != "HeightSharded" and sharded.equal_columns(layout, op.operands[0]):
            part = largest_part(tiles(shape(op.operands[0])), layout.grid)
            yield Choice(layout, operands, {}, buffers.sharded_norm(op, part, layout.grid[1]))


def softmax(op: ir.Operation, cores: Cores, wanted: Asked) -> Iterator[Choice]:
    """Each core has whole rows. The library takes nothing that is split for a softmax along another dimension."""
    for layout, operands in _as_operand(op, cores, wanted):
        if layout.memory_layout == "HeightSharded" and sharded.along_rows(op):
            yield Choice(layout, operands, {}, buffers.softmax(op, cores))


def reshape(op: ir.Operation, cores: Cores, wanted: Asked) -> Iterator[Choice]:
    """A reshape that leaves all tiles where they are, or one that reads a sharded operand and joins its parts."""
    if sharded.keeps_tiles(op):
        for layout, operands in _as_operand(op, cores, wanted):
            yield Choice(layout, operands, {}, buffers.MOVING)
    if layout_of(op.operands[0]).sharded and sharded.joins_parts(op):
        yield Choice(layout_of(op.results[0]).interleaved(), {}, {}, buffers.MOVING)


def moves(op: ir.Operation, cores: Cores, wanted: Asked) -> Iterator[Choice]:
    """A sharded operand and an interleaved result."""
    if layout_of(op.operands[0]).sharded and sharded.whole_tiles(op.operands[0]):
        scratch = max(buffers.MOVING, buffers.needed(op, cores))
        yield Choice(layout_of(op.results[0]).interleaved(), {}, {}, scratch)


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


def choices(op: ir.Operation, cores: Cores, wanted: Asked = NOTHING) -> Iterator[Choice]:
    """The forms of an op with tensors that are split over the cores, if it has any. They include the forms that an
    override asks for."""
    family = FAMILIES.get(op.name)
    if family is not None and layout_of(op.results[0]).tiled and _has_rows(op):
        yield from family(op, cores, wanted)


def _has_rows(op: ir.Operation) -> bool:
    return all(len(shape(v)) > 0 and 0 not in shape(v) for v in (*op.operands, *op.results))


def reads(op: ir.Operation, index: int, layout: Layout, cores: Cores) -> bool:
    """Whether an op has a form in which its operand lies as `layout`. The operand's type is changed for a moment."""
    with lying({op.operands[index]: layout}):
        return any(choice.operands.get(index, layout) == layout for choice in choices(op, cores))
