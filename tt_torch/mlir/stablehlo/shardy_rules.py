"""Which dimensions of an op may be split over a mesh, if Shardy's last pass makes the program of one chip of it.

This pass makes wrong programs of some ops: it reverses the parts of a split dimension, but leaves them at their places.
So only the ops in RULES may have split values, and only in the dimensions that their rule allows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from jaxlib.mlir import ir

# Ops that compute each element from the elements at the same place.
ELEMENTWISE = (
    "abs add and atan2 cbrt ceil clamp compare convert cosine count_leading_zeros divide exponential "
    "exponential_minus_one floor is_finite log log_plus_one logistic maximum minimum multiply negate not or popcnt "
    "power reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select shift_left "
    "shift_right_arithmetic shift_right_logical sign sine sqrt subtract tanh xor"
).split()
Dims = set[int]
# For an op, the dimensions of each operand and of each result that must be whole.
Whole = tuple[list[Dims], list[Dims]]
# A rule gets the op, and the number of chips along the longest axis of the mesh.
Rule = Callable[[Any, int], Whole]


def rank(value: Any) -> int:
    return ir.RankedTensorType(value.type).rank


def shape(value: Any) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


def nothing(op: Any, axis: int) -> Whole:
    return [set() for _ in op.operands], [set() for _ in op.results]


def everything(op: Any, axis: int) -> Whole:
    return [set(range(rank(x))) for x in op.operands], [set(range(rank(x))) for x in op.results]


def everywhere(op: Any, dims: Dims) -> Whole:
    """The same dimensions of all operands and results that have dimensions."""
    return [dims if rank(x) else set() for x in op.operands], [dims for _ in op.results]


def changed(op: Any, axis: int) -> Whole:
    """Dimensions that get another size, as in a slice. The other operands are numbers."""
    before, after = shape(op.operands[0]), shape(op.results[0])
    dims = {i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
    return everywhere(op, dims)


def moved(op: Any, axis: int) -> Whole:
    """A slice that keeps the size of a dimension takes all of it, but a pad may cut elements and add others."""
    parts = [list(ir.DenseI64ArrayAttr(op.attributes[f"edge_padding_{end}"])) for end in ("low", "high")]
    inner = list(ir.DenseI64ArrayAttr(op.attributes["interior_padding"]))
    return everywhere(op, {i for i, each in enumerate(zip(*parts, inner, strict=True)) if any(each)})


def along(name: str) -> Rule:
    """The dimension that an attribute of the op names."""
    return lambda op, axis: everywhere(op, {ir.IntegerAttr(op.attributes[name]).value})


def constant(op: Any, axis: int) -> Whole:
    """A constant whose elements are all equal may be split."""
    value = op.attributes["value"]
    return nothing(op, axis) if isinstance(value, ir.DenseElementsAttr) and value.is_splat else everything(op, axis)


def reshape(op: Any, axis: int) -> Whole:
    """Dimensions that change together: only the first one of each side may be split, into parts that both have."""
    (x,), (y,) = op.operands, op.results
    operand, result = set(range(rank(x))), set(range(rank(y)))
    for before, after in groups(shape(x), shape(y)):
        sizes = shape(x)[before[0]], shape(y)[after[0]]
        if sizes[0] == sizes[1] or not any(size % axis for size in sizes):
            operand.discard(before[0])
            result.discard(after[0])
    return [operand], [result]


def groups(before: list[int], after: list[int]) -> Iterator[tuple[list[int], list[int]]]:
    """The dimensions of both shapes that have the same elements, without dimensions of one element."""
    left = [i for i, size in enumerate(before) if size != 1]
    right = [i for i, size in enumerate(after) if size != 1]
    while left and right:
        ours, theirs = [left.pop(0)], [right.pop(0)]
        sizes = before[ours[0]], after[theirs[0]]
        while sizes[0] != sizes[1]:
            if sizes[0] < sizes[1]:
                ours.append(left.pop(0))
                sizes = sizes[0] * before[ours[-1]], sizes[1]
            else:
                theirs.append(right.pop(0))
                sizes = sizes[0], sizes[1] * after[theirs[-1]]
        yield ours, theirs


def reduction(op: Any, axis: int) -> Whole:
    """Only a sum may be over a split dimension, because Shardy adds the results of the chips, also those of a maximum.
    Each chip begins with the initial value, so it must be zero."""
    if len(op.results) > 1:  # such as the place of the largest element, which counts places
        return everything(op, axis)
    (*_, end) = op.regions[0].blocks[0].operations
    only = end.operands[0].owner
    is_sum = not isinstance(only, ir.Block) and only.name == "stablehlo.add" and adds(only)
    dims = set(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    return [set() if is_sum and is_zero(op.operands[1].owner) else dims, set()], [set()]


def adds(op: Any) -> bool:
    """Whether the results are both arguments of a block, added as numbers."""
    both = all(isinstance(x.owner, ir.Block) for x in op.operands) and op.operands[0] != op.operands[1]
    return both and str(ir.RankedTensorType(op.results[0].type).element_type) != "i1"


def is_zero(op: Any) -> bool:
    if isinstance(op, ir.Block) or not op.name.endswith(".constant"):
        return False
    value = op.attributes["value"]
    return bool(value.is_splat and not value.get_splat_value().value)


def convolution(op: Any, axis: int) -> Whole:
    """Only the batch may be split."""
    found = re.search(r"\[(.*?)\]x\[.*?\]->\[(.*?)\]", str(op.attributes["dimension_numbers"]))
    assert found
    batch, result = (each.split(", ").index("b") for each in found.groups())
    (x, weight), (y,) = everything(op, axis)
    one = ir.IntegerAttr(op.attributes["batch_group_count"]).value == 1
    return ([x - {batch}, weight], [y - {result}]) if one else ([x, weight], [y])


RULES: dict[str, Rule] = {
    **dict.fromkeys((f"stablehlo.{name}" for name in ELEMENTWISE), nothing),
    "stablehlo.broadcast_in_dim": nothing,
    "stablehlo.concatenate": along("dimension"),
    "stablehlo.constant": constant,
    "stablehlo.convolution": convolution,
    "stablehlo.dot_general": nothing,
    "stablehlo.iota": nothing,
    "stablehlo.pad": moved,
    "stablehlo.reduce": reduction,
    "stablehlo.reshape": reshape,
    "stablehlo.slice": changed,
    "stablehlo.sort": along("dimension"),
    "stablehlo.transpose": nothing,
}
