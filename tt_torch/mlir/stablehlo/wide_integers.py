"""Notes calls whose 64-bit integers leave the 32 bits in which the device computes them.

An analysis finds the ops whose results may leave 32 bits. Each of these ops is computed again in float32. The device's
integers wrap, so a result that left 32 bits differs from the float by about 2^32 or more. A cast of a float does not
wrap, but gives the smallest integer. The program gets one more result: the number of the first op where this is so, or
0.

Loops and branches give such a number, too. A loop whose number of steps is not known ends when its number is not 0.
Otherwise a condition of wrapped integers could keep it going for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from torch_mlir import ir

from tt_torch.dynamo.exactness.interval import Interval
from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir.context import describe, node_of
from tt_torch.mlir.functions import block, main, nested
from tt_torch.mlir.mesh import mesh_of
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.bodies import combining
from tt_torch.mlir.stablehlo.build import add_body, compared, constant, make, reshaped
from tt_torch.mlir.stablehlo.flatten import BRANCHES, inline_calls
from tt_torch.mlir.stablehlo.general_reductions import REDUCE, SCATTER, WINDOWS, reduce_by_slices
from tt_torch.mlir.stablehlo.loops import LOOP, states_of
from tt_torch.mlir.stablehlo.normalize import element_name, short_name
from tt_torch.mlir.stablehlo.wide_ranges import LIMITS, note_arguments, wide_ops
from tt_torch.mlir.ttir.from_stablehlo.composites import is_known
from tt_torch.mlir.types import Value

CUT = 1.0  # no cast of a float to an integer in range cuts off as much
REDUCTIONS = (REDUCE, WINDOWS, SCATTER)
FAR = 2.0**30  # more than what float32 rounds away from numbers below 2^33, and less than what a wrap changes


def check_wide_integers(module: ir.Module) -> list[str]:
    """Adds the result, which is an int32, and returns the nodes by their numbers, from 1 on. If no op can leave 32
    bits, there is no such result. In a program of several chips, each chip has its own number, of the shape (1, 1)."""
    if not any(element_name(x) in LIMITS for op in nested(module) for x in (*op.operands, *op.results)):
        return []
    inline_calls(module, is_known)
    finder = _Finder()
    with module.context:
        note_arguments(main(module), block(main(module)), finder.known)
        numbers = finder.numbers(block(main(module)))
        if numbers:
            _return_also(module, numbers)
    return finder.names


class _Finder:
    """Collects the nodes in the `names`, last ones first, so that the first node has the largest number."""

    def __init__(self) -> None:
        self.names, self.known = list[str](), dict[Value, Interval]()

    def numbers(self, body: ir.Block) -> list[Value]:
        """The numbers of the ops of a block, which are 0 if no result has left 32 bits."""
        simplify(body)
        ops = [op.operation for op in body.operations]
        wide = set(wide_ops(ops, self.known))
        found: list[Value] = []
        for op in reversed(ops):
            if op in wide:
                self.names.append(named(op))
                found.append(_number(op, len(self.names)))
            elif op.name in BRANCHES:
                found += self._of_branches(op)
            elif op.name == LOOP:
                found += self._of_loop(op)
        return found

    def _of_branches(self, op: ir.Operation) -> list[Value]:
        before, bodies = len(self.names), [region.blocks[0] for region in op.regions]
        numbers = [self.numbers(body) for body in bodies]
        if len(self.names) == before:
            return []
        for body, each in zip(bodies, numbers, strict=True):
            _return_more(body, each)
        return [list(_with_one_more(op, []).results)[-1]]

    def _of_loop(self, loop: ir.Operation) -> list[Value]:
        """The body also computes what the condition computes. The condition of the end is computed after the loop."""
        before, (condition, body) = len(self.names), [region.blocks[0] for region in loop.regions]
        has_known_steps = _has_known_steps(loop)
        note_arguments(loop, condition, self.known)
        *deciding, _ = [op.operation for op in condition.operations]
        is_wide = bool(wide_ops(deciding, self.known))
        if is_wide:
            _copied(deciding, condition.arguments, body.arguments, ir.InsertionPoint.at_block_begin(body))
        bound_counters(condition, body, self.known)
        note_arguments(loop, body, self.known)
        numbers = self.numbers(body)
        if len(self.names) == before:
            return []
        zero = _zero_before(loop)
        carried = body.add_argument(zero.type, loop.location)
        _return_more(body, [carried, *numbers])
        own = condition.add_argument(zero.type, loop.location)
        if not has_known_steps:
            _also_require_zero(condition, own)
        new = _with_one_more(loop, [zero])
        *results, number = new.results
        if not is_wide:
            return [number]
        after = _copied(deciding, condition.arguments, results, ir.InsertionPoint.after(new))
        wide = wide_ops(after, self.known)
        self.names += [named(op) for op in reversed(wide)]
        return [number, *(_number(op, len(self.names) - i) for i, op in enumerate(wide))]


def bound_counters(condition: ir.Block, body: ir.Block, known: dict[Value, Interval]) -> None:
    """Notes that `i` is less than `n` in the body of a loop on `i < n`."""
    *_, last = [op.operation for op in condition.operations]
    arguments, rest = list(condition.arguments), [last.operands[0]]
    while rest:
        op = rest.pop().owner
        if isinstance(op, ir.Block) or short_name(op) not in ("and", "compare", "reshape"):
            continue
        if short_name(op) != "compare":
            rest += op.operands
        elif attrs.direction(op) == "LT" and op.operands[0] in arguments:
            counter, end = op.operands
            if (limits := LIMITS.get(element_name(counter))) is not None:
                last_value = known.get(end, limits).high - 1
                known[body.arguments[arguments.index(counter)]] = Interval(limits.low, last_value)


def simplify(body: ir.Block, every: bool = False) -> None:
    """Leaves only reductions of 64-bit integers with one operand and one op in their bodies, apart from those that find
    a position, and from gradients of max pooling. If `every` is true, these are replaced, too."""
    found = [op.operation for op in body.operations if op.operation.name in REDUCTIONS]
    found = [op for op in found if LIMITS.keys() & {element_name(x) for x in op.results}]
    if found and all(x.type.has_static_shape for op in found for x in op.operands):
        reduce_by_slices(body, every)
    for op in [op.operation for op in body.operations if op.operation.name == REDUCE]:
        names, count = combining(op), len(op.results)
        if count > 1 and names is not None:
            with ir.InsertionPoint(op), op.location:
                for i, (name, result) in enumerate(zip(names, op.results, strict=True)):
                    result.replace_all_uses_with(_reduced(op, i, count, name))
            op.erase()


def _reduced(op: ir.Operation, i: int, count: int, name: str) -> Value:
    """The reduction of one of several operands."""
    operands = [op.operands[i], op.operands[count + i]]
    dimensions = {"dimensions": op.attributes["dimensions"]}
    new = ir.Operation.create(REDUCE, [op.results[i].type], operands, dimensions, regions=1)
    add_body(new.regions[0], operands[0].type.element_type, name)
    return new.results[0]


def named(op: ir.Operation) -> str:
    location = op.location
    while isinstance(location, ir.CallSiteLoc):  # of a function that was inlined
        location = location.callee
    return node_of(location)[0] or f"{op.name} ({describe(op.location)})"


def _has_known_steps(loop: ir.Operation) -> bool:
    try:
        states_of(loop)
    except UnsupportedOpError:
        return False
    return True


def _also_require_zero(condition: ir.Block, number: Value) -> None:
    """Makes the condition of a loop false if the number is not 0."""
    *_, last = [op.operation for op in condition.operations]
    with ir.InsertionPoint(last), last.location:
        going = last.operands[0]
        last.operands[0] = make("and", going.type, going, compared("EQ", number, _scalar(number.type.element_type, 0)))


def _zero_before(op: ir.Operation) -> Value:
    with ir.InsertionPoint(op), op.location:
        return _scalar(ir.IntegerType.get_signless(32), 0)


def _copied(
    ops: Sequence[ir.Operation], old: Sequence[Value], new: Sequence[Value], place: ir.InsertionPoint
) -> list[ir.Operation]:
    """Copies of ops at a place. They read the values `new` in place of `old`."""
    values, copies = dict(zip(old, new, strict=False)), []
    for op in ops:
        copy = op.clone(place).operation
        for each in (copy, *nested(copy)):
            for i, x in enumerate(each.operands):
                each.operands[i] = values.get(x, x)
        values.update(zip(op.results, copy.results, strict=True))
        copies.append(copy)
    return copies


def _return_more(body: ir.Block, numbers: Sequence[Value]) -> None:
    """Makes a block return the largest of some numbers, too; 0 if there are none."""
    *_, last = [op.operation for op in body.operations]
    with ir.InsertionPoint(last), last.location:
        zero = [] if numbers else [_scalar(ir.IntegerType.get_signless(32), 0)]
        total = reduce(lambda x, y: make("maximum", x.type, x, y), [*numbers, *zero])
        ir.Operation.create(last.name, [], [*last.operands, total])
    last.erase()


def _with_one_more(op: ir.Operation, operands: Sequence[Value]) -> ir.Operation:
    """The loop or branch with more operands, and an int32 as its last result."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    with ir.InsertionPoint(op), op.location:
        kinds = [*(x.type for x in op.results), ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))]
        new = ir.Operation.create(op.name, kinds, [*op.operands, *operands], attributes, regions=len(op.regions))
    for old, region in zip(op.regions, new.regions, strict=True):
        old.blocks[0].append_to(region)
    for value, result in zip(op.results, new.results, strict=False):
        value.replace_all_uses_with(result)
    op.erase()
    return new


def _number(op: ir.Operation, number: int) -> Value:
    """The number if an element of the op's result has left 32 bits, and 0 otherwise."""
    with ir.InsertionPoint.after(op), op.location:
        exact, got = _in_float32(op), _as_float(op.results[0])
        limit = CUT if short_name(op) == "convert" else FAR
        far = _compared("GT", make("abs", got.type, make("subtract", got.type, exact, got)), limit)
        if short_name(op) in ("convert", "divide"):  # no integer is defined for an infinite float, and for x / 0
            far = make("and", far.type, far, _compared("LT", make("abs", got.type, exact), np.inf))
        i32 = ir.IntegerType.get_signless(32)
        found = _largest(make("convert", _of(far, i32), far))
        return make("multiply", found.type, found, _scalar(i32, number))


def _in_float32(op: ir.Operation) -> Value:
    """The op on floats. A cast to an integer is only the cast to a float."""
    name, kind = short_name(op), _of(op.results[0], ir.F32Type.get())
    indices = [1] if name == "scatter" else []
    operands = [x if i in indices else _as_float(x) for i, x in enumerate(op.operands)]
    if name == "convert":
        return operands[0]
    if name == "not":  # of an unsigned number
        full = constant(kind, np.full(kind.shape, 2.0**64, np.float32))
        return make("subtract", kind, full, operands[0])
    if name == "shift_right_logical":
        return _shifted(op, kind)
    if name == "shift_left":
        operands[1] = _broadcast("power", kind.element_type, _scalar(kind.element_type, 2), operands[1])
    attributes = {key: op.attributes[key] for key in op.attributes}
    called = op.name.replace("shift_left", "multiply")
    new = ir.Operation.create(called, [kind], operands, attributes, regions=len(op.regions))
    for old, region in zip(op.regions, new.regions, strict=True):
        _write_on_floats(region, old.blocks[0])
    return new.results[0]


def _shifted(op: ir.Operation, kind: ir.RankedTensorType) -> Value:
    """A logical shift of int64 on floats. If it shifts a negative number by 0 bits, the number stays negative."""
    x, count = op.operands
    zero = constant(x.type, np.zeros(x.type.shape, np.int64))
    negative = compared("LT", x, zero)
    moved = make("and", negative.type, negative, compared("NE", count, zero))
    full, two = (constant(kind, np.full(kind.shape, number, np.float32)) for number in (2.0**64, 2))
    word = make("add", kind, full, _as_float(x))
    return make(
        "select",
        kind,
        moved,
        make("divide", kind, word, make("power", kind, two, _as_float(count))),
        _as_float(op.results[0]),
    )


def _write_on_floats(region: ir.Region, body: ir.Block) -> None:
    """Writes the body of a reduction into another region, with float32 in place of integers."""
    scalar = ir.RankedTensorType.get([], ir.F32Type.get())
    new = ir.Block.create_at_start(region, [scalar for _ in body.arguments])
    values = dict(zip(body.arguments, new.arguments, strict=True))
    with ir.InsertionPoint(new):
        for op in [each.operation for each in body.operations]:
            attributes = {key: op.attributes[key] for key in op.attributes if key != "compare_type"}
            kinds = [x.type if element_name(x) == "i1" else scalar for x in op.results]
            copy = ir.Operation.create(op.name, kinds, [values[x] for x in op.operands], attributes)
            values.update(zip(op.results, copy.results, strict=True))


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
    _return_more(block(function), numbers)
    *_, last = [op.operation for op in block(function).operations]
    if mesh_of(module.operation) != (1, 1):
        with ir.InsertionPoint(last), last.location:
            last.operands[len(last.operands) - 1] = reshaped(last.operands[len(last.operands) - 1], [1, 1])
    given, results = [x.type for x in function.arguments], [x.type for x in last.operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(given, results))
    if "res_attrs" in function.attributes:
        attributes = [*function.attributes["res_attrs"], ir.DictAttr.get({})]
        function.attributes["res_attrs"] = ir.ArrayAttr.get(attributes)


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
