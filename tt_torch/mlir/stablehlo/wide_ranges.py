"""Which ops of 64-bit integers may have results beyond the 32 bits in which the device computes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod

import numpy as np
from torch_mlir import ir

from tt_torch.dynamo.exactness.interval import ZERO, Interval, hull
from tt_torch.mlir.functions import read_by
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.bodies import body_op
from tt_torch.mlir.stablehlo.integer_rows import ONNX_MODEL, WIDE_ARGUMENTS, is_marked
from tt_torch.mlir.stablehlo.normalize import CONSTANTS, NARROW_INTEGERS, element_name, short_name
from tt_torch.mlir.types import Op, Value
from tt_torch.mlir.user_ops import is_call

LIMITS = {"i64": Interval(-(2**31), 2**31 - 1), "ui64": Interval(0, 2**32 - 1)}
FULL = {"i64": Interval(-(2**63), 2**63 - 1), "ui64": Interval(0, 2**64 - 1)}
LARGE = Interval(-(2.0**64), 2.0**64)
MOVING = ("reshape", "broadcast_in_dim", "transpose", "slice", "concatenate", "gather", "dynamic_slice", "reverse")
PICKING = (*MOVING, "select", "pad", "dynamic_update_slice")
UNBOUNDED = ("convolution", "dot", "dot_general", "power", "select_and_scatter")
WITH_BODIES = ("all_reduce", "reduce", "reduce_window", "scatter")
INDEXING = ("gather", "dynamic_slice")  # their first operand has the elements
# If only the low 32 bits of their results are read, only those of their operands are.
MODULAR = (*MOVING, "add", "subtract", "multiply", "negate", "and", "or", "xor", "shift_left")


def wide_ops(ops: Sequence[ir.Operation], known: dict[Value, Interval]) -> list[ir.Operation]:
    """The ops of a block on the device whose results may leave 32 bits, in their order. `known` has the ranges of
    values that were found before, and gets those of these ops."""
    in_full = read_in_full(ops)
    return [op for op in ops if is_wide(op, note_range(op, known), in_full) and not is_marked(op)]


def is_wide(op: ir.Operation, raw: Interval | None, in_full: set[Value]) -> bool:
    """Whether an op may have a result beyond 32 bits that is read in full. `raw` is its range before it wraps."""
    if raw is None or op.name in CONSTANTS:
        return False
    return not in_full.isdisjoint(op.results) and not raw.within(LIMITS[element_name(op.results[0])])


def note_arguments(op: Op, body: ir.Block, known: dict[Value, Interval]) -> None:
    """Notes the ranges of the arguments that the host has, for a block of a loop or of `main`."""
    places = [body.arguments[i] for i in attrs.ints(op, WIDE_ARGUMENTS) or ()]
    known |= {x: FULL[element_name(x)] for x in places}


def note_range(op: ir.Operation, known: dict[Value, Interval]) -> Interval | None:
    """The values that the result of an op may have before it wraps; None if nothing is known but its type. `known` gets
    the values that it has. On the device, a check keeps them in 32 bits. On the host, they wrap at 64 bits."""
    if is_marked(op):
        checks = short_name(op) == "custom_call" and not is_call(op, ONNX_MODEL)  # such a call is for the device
        kept = LIMITS if checks else FULL
        places = attrs.ints(op, WIDE_ARGUMENTS)  # the other results of a loop or branch are in 32 bits
        results = op.results if places is None else [op.results[i] for i in places]
        known |= {x: kept[element_name(x)] for x in results if element_name(x) in kept}
    if len(op.results) != 1 or (limits := LIMITS.get(element_name(op.results[0]))) is None:
        return None
    (result,), raw = op.results, _range(op, known)
    if raw is not None and not is_marked(op):
        known[result] = Interval(max(raw.low, limits.low), min(raw.high, limits.high))
    elif raw is not None and raw.within(known[result]):
        known[result] = raw
    return raw


def read_in_full(ops: Sequence[ir.Operation]) -> set[Value]:
    """The values of which not only the low 32 bits are read."""
    found: set[Value] = set()
    for op in reversed(ops):
        if _is_mask(op) or (short_name(op) == "convert" and element_name(op.results[0]) in NARROW_INTEGERS):
            continue
        if short_name(op) not in MODULAR or found.intersection(op.results):
            found.update(read_by(op))
        elif short_name(op) in (*INDEXING, "shift_left"):
            found.update(list(op.operands)[1:])
    return found


def _is_mask(op: ir.Operation) -> bool:
    """Whether an op keeps only some of the low 32 bits, such as `x & 255`."""
    if short_name(op) != "and" or (limits := LIMITS.get(element_name(op.results[0]))) is None:
        return False
    constants = [x.owner.operation for x in op.operands if not isinstance(x.owner, ir.Block)]
    kept = [attrs.splat(each.attributes["value"]) for each in constants if each.name in CONSTANTS]
    return any(bits is not None and 0 <= bits <= limits.high for bits in kept)


def _range(op: ir.Operation, known: dict[Value, Interval]) -> Interval | None:
    """The values that the result of an op may have before it wraps; None if nothing is known but its type."""
    name, shape = short_name(op), op.results[0].type.shape
    if op.name in CONSTANTS:
        values = attrs.elements(op.attributes["value"]) if 0 not in shape else np.zeros(1)
        return Interval(int(values.min()), int(values.max()))
    if name == "iota":
        return Interval(0, max(0, *shape, 1) - 1)
    given = [known.get(x) or _of_type(element_name(x)) for x in op.operands]
    if name in PICKING:
        return reduce(Interval.__or__, _picked(name, given))
    if name in WITH_BODIES:
        return _reduced(op, given)
    if name == "add" and (place := _counts_from_the_end(op)) is not None:
        given[place] = Interval(given[place].low, min(-1, given[place].high))
    if name == "not" and element_name(op.results[0]) == "ui64":
        return Interval(2**64 - 1 - given[0].high, 2**64 - 1 - given[0].low)
    return RULES[name](given) if name in RULES else None


def _picked(name: str, given: Sequence[Interval]) -> Sequence[Interval]:
    """The ranges of the operands whose elements the result has. The others are conditions and indices."""
    if name in INDEXING:
        return given[:1]
    return given[:2] if name == "dynamic_update_slice" else given[name == "select" :]


def _of_type(element: str) -> Interval:
    """The values of a type. 64-bit integers are in 32 bits, and a float may have any value."""
    if element in LIMITS:
        return LIMITS[element]
    width = int(element.lstrip("ui")) if element.lstrip("ui").isdigit() else 0
    if element == "i1" or element.startswith("u"):
        return Interval(0, 2**width - 1)
    return Interval(-(2 ** (width - 1)), 2 ** (width - 1) - 1) if width else LARGE


def _both(x: Interval, y: Interval) -> Interval:
    """The bits that both numbers have."""
    highs = [each.high for each in (x, y) if each.low >= 0]
    if highs:
        return Interval(0, min(highs))
    return LIMITS["i64"] if (x | y).within(LIMITS["i64"]) else FULL["i64"]


def _either(x: Interval, y: Interval) -> Interval | None:
    """The bits of both numbers, or those that they differ in."""
    if x.low >= 0 and y.low >= 0 and max(x.high, y.high) < 2**64:
        return Interval(0, 2 ** int(max(x.high, y.high)).bit_length() - 1)
    return None if (x | y).within(LIMITS["i64"]) else LARGE


def _scaled(x: Interval, count: Interval) -> Interval:
    return x.times(Interval(2 ** int(count.low), 2 ** int(count.high))) if 0 <= count.low <= count.high < 64 else LARGE


def _halved(x: Interval, count: Interval) -> Interval:
    """A logical shift. A negative number has its highest bit set."""
    high, least = (x.high if x.low >= 0 else 2**64 - 1), int(min(max(0, count.low), 64))
    moved = Interval(0, int(high) >> least)
    return moved if x.low >= 0 or count.low > 0 else moved | LARGE


def _largest(x: Interval, y: Interval) -> Interval:
    return Interval(max(x.low, y.low), max(x.high, y.high))


def _least(x: Interval, y: Interval) -> Interval:
    return Interval(min(x.low, y.low), min(x.high, y.high))


def _remainder(x: Interval, y: Interval) -> Interval:
    """The sign is that of x, and x / 0 has the remainder x."""
    largest = max(-y.low, y.high) - 1
    rest = Interval(max(x.low, -largest), min(x.high, largest)) | ZERO
    return rest | x if y.low <= 0 <= y.high else rest


RULES: dict[str, Callable[[Sequence[Interval]], Interval | None]] = {
    "abs": lambda given: given[0] | -given[0],
    "add": lambda given: given[0].plus(given[1]),
    "and": lambda given: _both(*given),
    "clamp": lambda given: _least(_largest(given[1], given[0]), given[2]),
    "convert": lambda given: given[0],
    "divide": lambda given: (given[0] | -given[0] if given[1].low <= -1 <= given[1].high else given[0]) | ZERO,
    "maximum": lambda given: _largest(*given),
    "minimum": lambda given: _least(*given),
    "multiply": lambda given: given[0].times(given[1]),
    "negate": lambda given: -given[0],
    "remainder": lambda given: _remainder(*given),
    "or": lambda given: _either(*given),
    "popcnt": lambda given: Interval(0, 64),
    "count_leading_zeros": lambda given: Interval(0, 64),
    "shift_left": lambda given: _scaled(*given),
    "shift_right_logical": lambda given: _halved(*given),
    "sign": lambda given: Interval(-1, 1),
    "subtract": lambda given: given[0].plus(-given[1]),
    "xor": lambda given: _either(*given),
    **dict.fromkeys(UNBOUNDED, lambda _: LARGE),
}


def _reduced(op: ir.Operation, given: Sequence[Interval]) -> Interval | None:
    """The range of an op with a body. The last operand of a scatter has its updates, and that of a reduction the
    initial value, which is also in each place of a window beside the elements."""
    body = body_op(op)
    if body in ("maximum", "minimum"):
        return given[0] | given[-1]
    if body == "add" and short_name(op) in ("reduce", "reduce_window"):
        padding = prod(attrs.ints(op, "window_dimensions") or []) if short_name(op) == "reduce_window" else 0
        elements = given[0].times(hull(0, prod(op.operands[0].type.shape)))
        return elements.plus(given[1].times(hull(1, 1 + padding)))
    return LARGE if body in ("add", "multiply") else None


def _counts_from_the_end(op: ir.Operation) -> int | None:
    """The position of the operand x, if the sum is only read by `select(x < 0, x + size, x)`."""
    readers = [use.owner.operation for use in op.results[0].uses]
    if len(readers) != 1 or short_name(readers[0]) != "select":
        return None
    condition, yes, no = readers[0].operands
    less = condition.owner
    if yes != op.results[0] or isinstance(less, ir.Block) or short_name(less.operation) != "compare":
        return None
    if attrs.direction(less) != "LT" or less.operands[0] != no or not _is_zero(less.operands[1]):
        return None
    return next((i for i, x in enumerate(op.operands) if x == no), None)


def _is_zero(x: Value) -> bool:
    """Whether a value is a constant of zeros, also behind reshapes and casts."""
    while not isinstance(x.owner, ir.Block) and short_name(x.owner.operation) in (
        "reshape",
        "convert",
        "broadcast_in_dim",
    ):
        x = x.owner.operands[0]
    op = None if isinstance(x.owner, ir.Block) else x.owner.operation
    return op is not None and op.name in CONSTANTS and not attrs.elements(op.attributes["value"]).any()
