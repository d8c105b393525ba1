"""Computes reductions with any body by applying the body to slices of tensors.

Two windows of 1, 2, 4, ... elements make one window of twice the size. So a reduction of 1,000 elements needs about ten
times the ops of its body. Examples are the log-sum-exp of JAX, bodies of complex numbers, and bodies that choose pairs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
from torch_mlir import ir

from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.bodies import applied, combining, is_elementwise, only_op
from tt_torch.mlir.stablehlo.build import broadcast, compared, constant, joined, make, padded, reshaped, sliced
from tt_torch.mlir.types import Value

COMBINED = {"add", "multiply", "maximum", "minimum", "and", "or", "xor"}  # bodies with which the device has reductions
LARGEST_WINDOW = 128  # elements of a window of select_and_scatter, each of which takes some ops
Values = list[Value]
REDUCE, WINDOWS, SCATTER = "stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.select_and_scatter"


def reduce_by_slices(body: ir.Block, every: bool = False) -> None:
    """Replaces the reductions of a block whose bodies are more than one op for each operand, or compute complex
    numbers. If `every` is true, this is also done for those that find a position and for gradients of max pooling, for
    which the device has ops."""
    for op in [op.operation for op in body.operations]:
        if not (rule := _rule(op, every)) or not all(map(is_elementwise, op.regions)):
            continue
        with ir.InsertionPoint(op), op.location:
            results = rule(op)
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()


def _rule(op: ir.Operation, every: bool) -> Callable[[ir.Operation], Values] | None:
    if op.name == SCATTER:
        return None if is_large(op) or (is_max_pool_gradient(op) and not every) else _select_and_scatter
    if op.name not in (REDUCE, WINDOWS) or 0 in [n for x in op.operands for n in x.type.shape]:
        return None
    names, is_complex = combining(op), "complex<" in str(op.results[0].type)
    if names is not None and not (is_complex and COMBINED.issuperset(names) and (op.name, names) != (REDUCE, ["add"])):
        return None  # the device has it, or it depends on the order of elements, as a subtraction does
    if op.name == WINDOWS:
        return _windows
    return None if _finds_a_position(op) and not every else _reduced


def is_large(op: ir.Operation) -> bool:
    """Whether a select_and_scatter has windows of too many elements for ops of the device."""
    return math.prod(attrs.ints(op, "window_dimensions")) > LARGEST_WINDOW


def is_max_pool_gradient(op: ir.Operation) -> bool:
    """Whether the device has ops for a select_and_scatter: it must be the gradient of a usual pool over at most two
    dimensions."""
    sizes, strides = attrs.ints(op, "window_dimensions"), attrs.ints(op, "window_strides")
    pads = attrs.ints(op, "padding") or [0] * 2 * len(sizes)
    ends = list(zip(pads[::2], pads[1::2], strict=True))
    moving = sum(one != (1, 1, (0, 0)) for one in zip(sizes, strides or [1] * len(sizes), ends, strict=True))
    usual = [only_op(region) for region in op.regions] == ["GE", "add"] and _is_zero(op.operands[2])
    return usual and 1 <= moving <= 2 and all(low == high >= 0 for low, high in ends)


def _is_zero(value: Value) -> bool:
    owner = value.owner
    is_constant = not isinstance(owner, ir.Block) and owner.name == "stablehlo.constant"
    return is_constant and attrs.splat(owner.attributes["value"]) == 0


def _finds_a_position(op: ir.Operation) -> bool:
    """Whether a reduction may be an argmax, for which the device has an op."""
    compares = any(each.operation.name == "stablehlo.compare" for each in op.regions[0].blocks[0].operations)
    values, integers = (op.operands[0].type.element_type, op.operands[len(op.results) - 1].type.element_type)
    pair = len(op.results) == 2 and isinstance(integers, ir.IntegerType)
    return pair and compares and not isinstance(values, ir.ComplexType)


def _halves(op: ir.Operation) -> tuple[Values, Values]:
    """The operands and the initial values."""
    count = len(op.operands) // 2
    return list(op.operands)[:count], list(op.operands)[count:]


def _with_initial(op: ir.Operation, values: Values, initial: Values) -> Values:
    """Combines reduced values with the initial values, so that the initial values take part once."""
    spread = [broadcast(i, x.type.shape, []) for i, x in zip(initial, values, strict=True)]
    return applied(op.regions[0], [*spread, *values])


def _reduced(op: ir.Operation) -> Values:
    """Neighbours are combined until one element of each reduced dimension is left. This keeps the order of elements."""
    values, initial = _halves(op)
    dims = attrs.ints(op, "dimensions")
    for dim in dims:
        while (size := values[0].type.shape[dim]) > 1:
            even = [_part(x, dim, 0, size - size % 2, 2) for x in values]
            odd = [_part(x, dim, 1, size, 2) for x in values]
            both = applied(op.regions[0], [*even, *odd])
            if size % 2:
                rest = [_part(x, dim, size - 1, size) for x in values]
                both = [joined(p, _resized(p[0], dim, size // 2 + 1), dim) for p in zip(both, rest, strict=True)]
            values = both
    shape = [n for d, n in enumerate(values[0].type.shape) if d not in dims]
    return _with_initial(op, [reshaped(x, shape) for x in values], initial)


def _windows(op: ir.Operation) -> Values:
    """Elements of the padding, and new elements between elements that are spread, have the initial values."""
    values, initial = _halves(op)
    rank = len(values[0].type.shape)
    sizes, ones = attrs.ints(op, "window_dimensions"), [1] * rank
    strides, dilations, spread = (
        attrs.ints(op, name) or ones for name in ("window_strides", "window_dilations", "base_dilations")
    )
    pads = attrs.ints(op, "padding") or [0] * 2 * rank
    values = [
        padded(x, i, pads[::2], pads[1::2], [n - 1 for n in spread]) for x, i in zip(values, initial, strict=True)
    ]
    for dim in range(rank):
        values = _along(op, values, dim, sizes[dim], strides[dim], dilations[dim])
    return _with_initial(op, values, initial)


def _along(op: ir.Operation, values: Values, dim: int, window: int, stride: int, dilation: int) -> Values:
    """Windows along one dimension. Each window is made of windows whose sizes are the powers of two in its size."""
    positions = max(0, values[0].type.shape[dim] - (window - 1) * dilation)
    result: Values = []
    begin, size = 0, 1
    while size <= window:
        if window & size:
            one = [_part(x, dim, begin * dilation, begin * dilation + positions) for x in values]
            result, begin = applied(op.regions[0], [*result, *one]) if result else one, begin + size
        size *= 2
        if size <= window:
            step, length = size // 2 * dilation, values[0].type.shape[dim]
            first = [_part(x, dim, 0, length - step) for x in values]
            values = applied(op.regions[0], [*first, *(_part(x, dim, step, length) for x in values)])
    return [_part(x, dim, 0, positions, stride) for x in result]


def _select_and_scatter(op: ir.Operation) -> Values:
    """For each place in the windows: if it is the selected place, the source is combined with the value there."""
    x, source, initial = op.operands
    kind, shape = x.type, source.type.shape
    sizes, ones = attrs.ints(op, "window_dimensions"), [1] * len(shape)
    strides = attrs.ints(op, "window_strides") or ones
    pads = attrs.ints(op, "padding") or [0] * 2 * len(shape)
    boolean, integer = ir.IntegerType.get_signless(1), ir.IntegerType.get_signless(32)
    inside = constant(ir.RankedTensorType.get(kind.shape, boolean), np.ones(kind.shape, np.bool_))
    no = constant(ir.RankedTensorType.get([], boolean), np.zeros([], np.bool_))
    x, inside = (padded(v, fill, pads[::2], pads[1::2]) for v, fill in ((x, initial), (inside, no)))
    places = list(itertools.product(*map(range, sizes)))
    numbers = ir.RankedTensorType.get(shape, integer)

    def at(value: Value, place: Sequence[int]) -> Value:
        ends = [p + (n - 1) * s + 1 for p, n, s in zip(place, shape, strides, strict=True)]
        return sliced(value, place, ends, strides)

    best, known = at(x, places[0]), at(inside, places[0])
    chosen = constant(numbers, np.zeros(shape, np.int32))
    for number, place in enumerate(places[1:], 1):
        new, there = at(x, place), at(inside, place)
        (keeps,) = applied(op.regions[0], [best, new])
        takes = make("and", there.type, there, make("not", there.type, make("and", known.type, known, keeps)))
        best = make("select", best.type, takes, new, best)
        chosen = make("select", numbers, takes, constant(numbers, np.full(shape, number, np.int32)), chosen)
        known = make("or", known.type, known, there)
    result = broadcast(initial, x.type.shape, [])
    for number, place in enumerate(places):
        here = compared("EQ", chosen, constant(numbers, np.full(shape, number, np.int32)))
        rest = [m - p - (n - 1) * s - 1 for m, p, n, s in zip(x.type.shape, place, shape, strides, strict=True)]
        back = [padded(v, fill, place, rest, [s - 1 for s in strides]) for v, fill in ((source, initial), (here, no))]
        (both,) = applied(op.regions[1], [result, back[0]])
        result = make("select", result.type, back[1], both, result)
    low = [max(0, p) for p in pads[::2]]
    return [sliced(result, low, [b + n for b, n in zip(low, kind.shape, strict=True)])]


def _part(x: Value, dim: int, begin: int, end: int, stride: int = 1) -> Value:
    sizes = list(x.type.shape)
    starts = [begin if d == dim else 0 for d in range(len(sizes))]
    ends = [end if d == dim else n for d, n in enumerate(sizes)]
    return sliced(x, starts, ends, [stride if d == dim else 1 for d in range(len(sizes))])


def _resized(x: Value, dim: int, size: int) -> ir.Type:
    return ir.RankedTensorType.get([size if d == dim else n for d, n in enumerate(x.type.shape)], x.type.element_type)
