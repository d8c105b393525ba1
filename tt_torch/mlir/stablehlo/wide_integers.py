"""Notes calls whose 64-bit integers leave the 32 bits in which the device computes them.

An analysis finds the ops whose results may leave 32 bits. Each of these ops is computed again in float32. The device's
integers wrap, so a result that left 32 bits differs from the float by about 2^32 or more. A cast of a float does not
wrap, but gives the smallest integer. The program gets one more result: the number of the first op where this is so, or
0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod

import numpy as np
from torch_mlir import ir

from tt_torch.dynamo.exactness.interval import ZERO, Interval, hull
from tt_torch.mlir.context import node_of
from tt_torch.mlir.functions import block, main
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.bodies import body_op
from tt_torch.mlir.stablehlo.build import add_body, constant, make
from tt_torch.mlir.stablehlo.normalize import CONSTANTS, NARROW_INTEGERS, element_name
from tt_torch.mlir.types import Value

LIMITS = {"i64": Interval(-(2**31), 2**31 - 1), "ui64": Interval(0, 2**32 - 1)}
LARGE = Interval(-(2.0**64), 2.0**64)
WIDE_NODES = "tt.wide_nodes"
CUT = 1.0  # no cast of a float to an integer in range cuts off as much
FAR = 2.0**30  # more than what float32 rounds away from numbers below 2^33, and less than what a wrap changes
MOVING = ("reshape", "broadcast_in_dim", "transpose", "slice", "concatenate", "gather", "dynamic_slice", "reverse")
PICKING = (*MOVING, "maximum", "minimum", "select", "clamp", "pad", "dynamic_update_slice")
WITH_BODIES = ("reduce", "reduce_window", "scatter")
# If only the low 32 bits of their results are read, only those of their operands are.
MODULAR = (*MOVING, "add", "subtract", "multiply", "negate", "and", "or", "xor", "shift_left")


def check_wide_integers(module: ir.Module) -> list[str]:
    """Adds the result, which is an int32, and returns the nodes by their numbers, from 1 on. If no op can leave 32
    bits, the module stays as it is. A loop with WIDE_NODES gives the number of one of them as its last result."""
    ops = [op.operation for op in block(main(module)).operations]
    in_full = _read_in_full(ops)
    known: dict[Value, Interval] = {}
    wide: list[ir.Operation] = []
    for op in ops:
        if len(op.results) != 1 or (limits := LIMITS.get(element_name(op.results[0]))) is None:
            continue
        if (raw := _range(op, known)) is None:
            continue
        if op.name not in CONSTANTS and op.results[0] in in_full and not raw.within(limits):
            wide.append(op)
        known[op.results[0]] = Interval(max(raw.low, limits.low), min(raw.high, limits.high))
    wide.reverse()  # the first op has the largest number
    names = [node_of(op.location)[0] or str(op.location) for op in wide]
    with module.context:
        numbers = [_number(op, i) for i, op in enumerate(wide, 1)]
        for loop in [op for op in ops if WIDE_NODES in op.attributes]:
            numbers.append(_shifted(loop, len(names)))
            names += [name.value for name in loop.attributes[WIDE_NODES]]
        if numbers:
            _return_also(module, numbers)
    return names


def _name(op: ir.Operation) -> str:
    return op.name.rpartition(".")[2].removeprefix("broadcast_") if op.name.startswith("chlo.") else op.name[10:]


def _read_in_full(ops: Sequence[ir.Operation]) -> set[Value]:
    """The values of which not only the low 32 bits are read."""
    found: set[Value] = set()
    for op in reversed(ops):
        narrows = _name(op) == "convert" and element_name(op.results[0]) in NARROW_INTEGERS
        if not narrows and (_name(op) not in MODULAR or found.intersection(op.results)):
            found.update(op.operands)
    return found


def _range(op: ir.Operation, known: dict[Value, Interval]) -> Interval | None:
    """The values that the result of an op may have before it wraps; None if nothing is known but its type."""
    name, shape = _name(op), op.results[0].type.shape
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
    return RULES[name](given) if name in RULES else None


def _picked(name: str, given: Sequence[Interval]) -> Sequence[Interval]:
    """The ranges of the operands whose elements the result has. The others are conditions and indices."""
    if name in ("gather", "dynamic_slice"):
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


RULES: dict[str, Callable[[Sequence[Interval]], Interval]] = {
    "abs": lambda given: given[0] | -given[0],
    "add": lambda given: given[0].plus(given[1]),
    "convert": lambda given: given[0],
    "divide": lambda given: (given[0] | -given[0] if given[1].low <= -1 <= given[1].high else given[0]) | ZERO,
    "multiply": lambda given: given[0].times(given[1]),
    "negate": lambda given: -given[0],
    "subtract": lambda given: given[0].plus(-given[1]),
    **dict.fromkeys(("convolution", "dot", "dot_general", "power", "shift_left"), lambda _: LARGE),
}


def _reduced(op: ir.Operation, given: Sequence[Interval]) -> Interval | None:
    """The range of an op with a body. The last operand of a scatter has its updates, and that of a reduction the
    initial value."""
    body = body_op(op)
    if body in ("maximum", "minimum"):
        return given[0] | given[-1]
    if body == "add" and _name(op) != "scatter":
        return given[0].times(hull(0, prod(op.operands[0].type.shape))).plus(given[1])
    return LARGE if body in ("add", "multiply") else None


def _counts_from_the_end(op: ir.Operation) -> int | None:
    """The position of the operand x, if the sum is only read by `select(x < 0, x + size, x)`."""
    readers = [use.owner.operation for use in op.results[0].uses]
    if len(readers) != 1 or _name(readers[0]) != "select":
        return None
    condition, yes, no = readers[0].operands
    less = condition.owner
    if yes != op.results[0] or isinstance(less, ir.Block) or _name(less.operation) != "compare":
        return None
    if attrs.direction(less) != "LT" or less.operands[0] != no or not _is_zero(less.operands[1]):
        return None
    return next((i for i, x in enumerate(op.operands) if x == no), None)


def _is_zero(x: Value) -> bool:
    """Whether a value is a constant of zeros, also behind reshapes and casts."""
    while not isinstance(x.owner, ir.Block) and _name(x.owner.operation) in ("reshape", "convert", "broadcast_in_dim"):
        x = x.owner.operands[0]
    op = None if isinstance(x.owner, ir.Block) else x.owner.operation
    return op is not None and op.name in CONSTANTS and not attrs.elements(op.attributes["value"]).any()


def _number(op: ir.Operation, number: int) -> Value:
    """The number if an element of the op's result has left 32 bits, and 0 otherwise."""
    with ir.InsertionPoint.after(op), op.location:
        exact, got = _in_float32(op), _as_float(op.results[0])
        limit = CUT if _name(op) == "convert" else FAR
        far = _compared("GT", make("abs", got.type, make("subtract", got.type, exact, got)), limit)
        if _name(op) == "convert":  # no integer is defined for an infinite float
            far = make("and", far.type, far, _compared("LT", make("abs", got.type, exact), np.inf))
        i32 = ir.IntegerType.get_signless(32)
        numbers = _broadcast("multiply", i32, make("convert", _of(far, i32), far), _scalar(i32, number))
        return _largest(numbers)


def _shifted(loop: ir.Operation, offset: int) -> Value:
    """The number of a node in a loop, counted from the offset; 0 if the loop gives 0."""
    with ir.InsertionPoint.after(loop), loop.location:
        number = list(loop.results)[-1]
        more = constant(number.type, np.array(offset, np.int32))
        one = constant(number.type, np.array(1, np.int32))
        found = make("minimum", number.type, number, one)
        return make("add", number.type, number, make("multiply", number.type, found, more))


def _in_float32(op: ir.Operation) -> Value:
    """The op on floats. A cast to an integer is only the cast to a float."""
    name, kind = _name(op), _of(op.results[0], ir.F32Type.get())
    indices = [1] if name == "scatter" else []
    operands = [x if i in indices else _as_float(x) for i, x in enumerate(op.operands)]
    if name == "convert":
        return operands[0]
    if name == "shift_left":
        operands[1] = _broadcast("power", kind.element_type, _scalar(kind.element_type, 2), operands[1])
    if name in WITH_BODIES:
        attributes = {key: op.attributes[key] for key in op.attributes}
        new = ir.Operation.create(op.name, [kind], operands, attributes, regions=1)
        add_body(new.regions[0], kind.element_type, body_op(op))
        return new.results[0]
    attributes = {key: op.attributes[key] for key in op.attributes}
    return ir.Operation.create(op.name.replace("shift_left", "multiply"), [kind], operands, attributes).results[0]


def _largest(numbers: Value) -> Value:
    """The largest number of a tensor, and 0 for an empty one."""
    element, rank = numbers.type.element_type, len(numbers.type.shape)
    dimensions = {"dimensions": ir.DenseI64ArrayAttr.get(list(range(rank)))}
    operands = [numbers, _scalar(element, 0)]
    new = ir.Operation.create("stablehlo.reduce", [operands[1].type], operands, dimensions, regions=1)
    add_body(new.regions[0], element, "maximum")
    return new.results[0]


def _return_also(module: ir.Module, numbers: Sequence[Value]) -> None:
    """Makes the program return the largest of some int32, too."""
    function = main(module)
    *_, last = [op.operation for op in block(function).operations]
    with ir.InsertionPoint(last), last.location:
        total = reduce(lambda x, y: make("maximum", x.type, x, y), numbers)
        operands = [*last.operands, total]
        ir.Operation.create("func.return", [], operands)
    last.erase()
    given, results = [x.type for x in function.arguments], [x.type for x in operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(given, results))


def _of(x: Value, element: ir.Type) -> ir.RankedTensorType:
    return ir.RankedTensorType.get(x.type.shape, element)


def _as_float(x: Value) -> Value:
    return make("convert", _of(x, ir.F32Type.get()), x)


def _scalar(element: ir.Type, number: float) -> Value:
    kind = ir.RankedTensorType.get([], element)
    return constant(kind, np.array(number, np.float32 if isinstance(element, ir.F32Type) else np.int32))


def _broadcast(name: str, element: ir.Type, x: Value, y: Value, **attributes: ir.Attribute) -> Value:
    """An op on a tensor and a scalar, in any order. The tensor may have open sizes."""
    kind = _of(x if x.type.shape else y, element)
    return ir.Operation.create(f"chlo.broadcast_{name}", [kind], [x, y], attributes).results[0]


def _compared(direction: str, x: Value, number: float) -> Value:
    way = ir.Attribute.parse(f"#chlo<comparison_direction {direction}>")
    limit = _scalar(x.type.element_type, number)
    return _broadcast("compare", ir.IntegerType.get_signless(1), x, limit, comparison_direction=way)
