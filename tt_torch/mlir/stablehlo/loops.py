"""Replaces a loop by one call of its body for each step, if the number of steps follows from constants.

`while` with a counter from 0 to 3 becomes `@body(0, x)`, `@body(1, ...)`, `@body(2, ...)`: the counter is a constant in
each call, so that slices at its place are plain slices once the calls are inlined.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from torch_mlir import ir

from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir.context import describe
from tt_torch.mlir.functions import block, captured_by, nested
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.build import constant
from tt_torch.mlir.stablehlo.normalize import CONSTANTS, element_name, short_name
from tt_torch.mlir.types import Function, Op, Value

MOST_OPS = 8192  # of all steps together; a program of 1,000 ops takes about a second to compile
LOOP = "stablehlo.while"
Scalar: TypeAlias = np.ndarray[Any, Any]  # with one element
State: TypeAlias = list[Scalar | None]  # the values that a loop carries; None for a value that is not known

_COMPARE = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater}
_COMPARE["GE"] = np.greater_equal
_SCALARS: dict[str, Callable[..., Scalar]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "maximum": np.maximum,
    "minimum": np.minimum, "and": operator.and_, "or": operator.or_, "xor": operator.xor, "not": np.invert,
    "negate": operator.neg, "select": np.where,
}  # fmt: skip
_DTYPES = {"i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
_DTYPES |= {"ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64}


class _Unknown(Exception):
    """A value that does not follow from constants of integers or booleans."""


def take_loops_apart(function: Function, prefix: str, stays: Callable[[Op], bool]) -> bool:
    """Replaces the loops of a function, apart from those inside other loops, by calls. Says whether there were any.

    The names of the new functions begin with the prefix. Loops for which `stays` is true are left as they are.
    Raises UnsupportedOpError for a loop whose number of steps depends on values of the arguments, or is too large.
    """
    loops = [op for o in block(function).operations if (op := o.operation).name == LOOP and not stays(op)]
    for number, loop in enumerate(loops):
        _replace_by_calls(loop, unrolled(loop), f"{prefix}_{number}", function)
    return bool(loops)


def unrolled(loop: ir.Operation) -> list[State]:
    """The states before each step of a loop that can be unrolled. Raises UnsupportedOpError for other loops."""
    states = states_of(loop)
    size = len(_inside(loop.regions[1].blocks[0]))
    if size * len(states) > MOST_OPS:
        raise _refused(loop, f"its {len(states):,} steps of {size} ops are more than {MOST_OPS:,} ops")
    return states


def _refused(loop: ir.Operation, detail: str) -> UnsupportedOpError:
    return UnsupportedOpError(LOOP, "stablehlo-to-ttir", describe(loop.location), detail)


def states_of(loop: ir.Operation) -> list[State]:
    """The carried values before each step. Values that do not decide the number of steps are None.

    Raises UnsupportedOpError if the number of steps is not known, or larger than MOST_OPS.
    """
    condition, body = (region.blocks[0] for region in loop.regions)
    going_on, results = list(condition.operations)[-1].operands[0], list(list(body.operations)[-1].operands)
    needed = _needed(going_on, condition, body, results)
    states: list[State] = []
    try:
        state: State = [_scalar(x, {}) if i in needed else None for i, x in enumerate(loop.operands)]
        while _scalar(going_on, dict(zip(condition.arguments, state, strict=True))):
            if len(states) == MOST_OPS:
                raise _refused(loop, f"it has more than {MOST_OPS:,} steps")
            states.append(state)
            known = dict(zip(body.arguments, state, strict=True))
            state = [_scalar(x, known) if i in needed else None for i, x in enumerate(results)]
    except (_Unknown, RecursionError) as cause:
        raise _refused(loop, f"its number of steps is not a constant: it depends on {cause}") from None
    return states


def _needed(going_on: Value, condition: ir.Block, body: ir.Block, results: Sequence[Value]) -> set[int]:
    """The positions of the carried values on which the number of steps depends."""
    needed: set[int] = set()
    rest = _arguments(going_on, condition)
    while rest:
        needed |= rest
        rest = {i for position in rest for i in _arguments(results[position], body)} - needed
    return needed


def _arguments(value: Value, of: ir.Block) -> set[int]:
    """The positions of the block's arguments from which a value is computed."""
    found: set[int] = set()
    rest, seen = [value], {value}
    arguments = list(of.arguments)
    while rest:
        value = rest.pop()
        if value in arguments:
            found.add(arguments.index(value))
        elif not isinstance(value, ir.BlockArgument):
            new = [x for x in value.owner.operands if x not in seen]
            rest += new
            seen |= set(new)
    return found


def _scalar(value: Value, known: dict[Value, Scalar | None]) -> Scalar:
    """The value of an integer or boolean scalar. It is added to `known`. Raises _Unknown with the cause."""
    if value not in known:
        known[value] = _computed(value, known)
    found = known[value]
    if found is None:
        raise _Unknown("a value that the loop computes")
    return found


def _computed(value: Value, known: dict[Value, Scalar | None]) -> Scalar:
    if isinstance(value, ir.BlockArgument):
        raise _Unknown("an argument")
    op, kind = value.owner.operation, value.type
    name = short_name(op)
    has_one = isinstance(kind, ir.RankedTensorType) and kind.has_static_shape and prod(kind.shape) == 1
    dtype = _DTYPES.get(element_name(value)) if has_one else None
    if dtype is None or (op.name not in CONSTANTS and name not in (*_SCALARS, "compare", "convert", "reshape")):
        raise _Unknown(op.name)
    if op.name in CONSTANTS:
        return np.asarray(attrs.elements(op.attributes["value"])).astype(dtype).reshape(())
    operands = [_scalar(x, known) for x in op.operands]
    if name == "compare":
        return np.asarray(_COMPARE[attrs.direction(op)](*operands))
    computed = operands[0] if name in ("convert", "reshape") else _SCALARS[name](*operands)
    return np.asarray(computed).astype(dtype).reshape(())


def _replace_by_calls(loop: ir.Operation, states: Sequence[State], name: str, beside: Function) -> None:
    captured = _outline(loop, name, beside)
    values = list(loop.operands)
    kinds = [value.type for value in values]
    with ir.InsertionPoint(loop), loop.location:
        for state in states:
            given = [v if s is None else constant(v.type, s) for v, s in zip(values, state, strict=True)]
            callee = {"callee": ir.FlatSymbolRefAttr.get(name)}
            values = list(ir.Operation.create("func.call", kinds, [*given, *captured], callee).results)
    for old, new in zip(loop.results, values, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _outline(loop: ir.Operation, name: str, beside: Function) -> list[Value]:
    """Moves the body of a loop into a function of the module; returns the values from outside that it also takes."""
    body = loop.regions[1].blocks[0]
    captured = captured_by(loop)
    inner = {value: body.add_argument(value.type, loop.location) for value in captured}
    for op in _inside(body):
        for i, x in enumerate(op.operands):
            op.operands[i] = inner.get(x, x)
    last = list(body.operations)[-1]
    taken, given = [a.type for a in body.arguments], list(last.operands)
    signature = ir.TypeAttr.get(ir.FunctionType.get(taken, [value.type for value in given]))
    named = {"sym_name": ir.StringAttr.get(name), "sym_visibility": ir.StringAttr.get("private")}
    with ir.InsertionPoint(beside), loop.location:
        function = ir.Operation.create("func.func", [], [], {**named, "function_type": signature}, regions=1)
    with ir.InsertionPoint(last), loop.location:
        ir.Operation.create("func.return", [], given)
    last.operation.erase()
    body.append_to(function.regions[0])
    return captured


def _inside(body: ir.Block) -> list[ir.Operation]:
    """All ops of a block, also those in regions."""
    return [each for op in body.operations for each in (op.operation, *nested(op))]
