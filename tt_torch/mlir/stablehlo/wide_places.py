"""Decides which ops on 64-bit integers the host computes, because the device has 32 bits.

These are the ops that need 64 bits for nearly all values, such as `x * 0x9e3779b97f4a7c15`, the ops that read such
values, and the ops that stand between two of these, so that few values pass between the device and the host. Other ops
stay on the device, where `wide_integers.py` checks their values.

If a call leaves 32 bits there, a second form of the program computes it. In this form, all inputs may need 64 bits, and
the host computes each op that may leave 32 bits.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from math import prod

from torch_mlir import ir

from tt_torch.dynamo.exactness.interval import ZERO, Interval
from tt_torch.mlir.functions import block, main, nested, read_by
from tt_torch.mlir.mesh import mesh_of
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.bodies import body_op
from tt_torch.mlir.stablehlo.flatten import BRANCHES, inline_calls
from tt_torch.mlir.stablehlo.integer_rows import (
    IN_32_BITS,
    NEAREST,
    NO_FORM,
    TOWARD_ZERO,
    function_of,
    is_marked,
    lacks_form,
    mark,
    mark_wide,
)
from tt_torch.mlir.stablehlo.loops import LOOP
from tt_torch.mlir.stablehlo.normalize import CONSTANTS, FLOATS, MOVES, element_name, short_name
from tt_torch.mlir.stablehlo.random_state import numbers_to_words, states_to_words
from tt_torch.mlir.stablehlo.wide_integers import bound_counters, named, simplify
from tt_torch.mlir.stablehlo.wide_ranges import FULL, LIMITS, RULES, is_wide, note_range, read_in_full
from tt_torch.mlir.ttir.from_stablehlo.composites import is_known
from tt_torch.mlir.types import Value

MAKES = "its integers need more than 32 bits"
READS = "it reads integers of more than 32 bits"
BETWEEN = "it stands between ops of the host"
FAR = 16  # a number that is shifted left by as many bits leaves 32 bits for nearly all values
LARGEST_COPY = 2**16  # elements of a constant that the host gets from the program's text
# The operands that are positions. A position outside of a tensor means the same as the nearest one in 32 bits.
POSITIONS = {"gather": slice(1, 2), "scatter": slice(1, 2), "dynamic_slice": slice(1, None)}
POSITIONS["dynamic_update_slice"] = slice(2, None)


def may_leave_32_bits(module: ir.Module) -> bool:
    """Whether a module for one chip has 64-bit integers, also among inputs that no op reads, or bits of float64."""
    if mesh_of(module.operation) != (1, 1):
        return False
    values = [*main(module).arguments, *(x for op in nested(module) for x in (*op.operands, *op.results))]
    return any(element_name(x) in FULL or _has_bits_of_float64(x) for x in values)


def place_wide_integers(module: ir.Module, every: bool = False) -> None:
    """Marks the ops of the host, which has none on a mesh. If `every` is true, this makes the second form."""
    if not may_leave_32_bits(module):
        return
    inline_calls(module, is_known)
    with module.context:
        _Places(block(main(module)), every).place()
        arguments = main(module).arguments
        if any(is_marked(op) for op in nested(main(module))) or every:
            mark_wide(main(module), [i for i, x in enumerate(arguments) if every and element_name(x) in FULL])


class _Places:
    def __init__(self, body: ir.Block, every: bool) -> None:
        self.body, self.every, self.changed = body, every, True
        self.known: dict[Value, Interval] = {}  # on the host, ranges may be beyond 32 bits
        self.sources: dict[Value, Interval] = {}  # integers that follow from constants, as the text has them
        self.carried: set[Value] = set()  # arguments and results of loops and branches that the host has
        if every:
            self.carried |= {x for x in body.arguments if element_name(x) in FULL}

    def place(self) -> None:
        for body in _blocks(self.body):
            simplify(body, self.every)
            numbers_to_words(body)
            states_to_words(body, with_host=True)
        while self.changed:
            self.changed = False
            self._visit(self.body)
            if not self.changed:
                for body in _blocks(self.body):
                    self._mark_between([op.operation for op in body.operations])
        for body in _blocks(self.body):
            self._give_constants(body)
            self._give_to_device(body)

    def _mark(self, op: ir.Operation, reason: str) -> None:
        if not is_marked(op):
            mark(op, reason)
            self.changed = True

    def _needs_64(self, x: Value) -> bool:
        """Whether the host has a value, and it may need more than 32 bits."""
        limits = LIMITS.get(element_name(x))
        return limits is not None and x not in self.sources and not self.known.get(x, limits).within(limits)

    def _is_large(self, x: Value) -> bool:
        """Whether a value follows from constants, and needs more than 32 bits."""
        limits = LIMITS.get(element_name(x))
        return limits is not None and x in self.sources and not self.sources[x].within(limits)

    def _visit(self, body: ir.Block) -> None:
        self.known |= {x: FULL[element_name(x)] for x in body.arguments if x in self.carried}
        ops = [op.operation for op in body.operations]
        in_full = read_in_full(ops)
        for op in ops:
            if op.name == LOOP:
                self._visit_loop(op)
            elif op.name in BRANCHES:
                self._visit_branches(op)
            else:
                raw = note_range(op, self.known)
                self._note_source(op, raw)
                if not is_marked(op) and (reason := self._reason(op, raw, in_full)):
                    self._mark(op, reason)
                    note_range(op, self.known)

    def _visit_loop(self, op: ir.Operation) -> None:
        condition, body = (region.blocks[0] for region in op.regions)
        *_, last = body.operations
        places = list(zip(op.operands, condition.arguments, body.arguments, op.results, strict=True))
        for first, *others in places:
            self._carry([first], others)
        bound_counters(condition, body, self.known)
        self._visit(condition)
        self._visit(body)
        for new, (_, *others) in zip(last.operands, places, strict=True):
            self._carry([new], others)
        self._finish(op)

    def _visit_branches(self, op: ir.Operation) -> None:
        bodies = [region.blocks[0] for region in op.regions]
        for body in bodies:
            self._visit(body)
        for i, result in enumerate(op.results):
            self._carry([list(body.operations)[-1].operands[i] for body in bodies], [result])
        self._finish(op)

    def _carry(self, given: Sequence[Value], taking: Sequence[Value]) -> None:
        """Notes that values become others. If one of them needs 64 bits, the host has these."""
        if any(self._needs_64(x) or self._is_large(x) for x in given) and not self.carried.issuperset(taking):
            self.carried.update(taking)
            self.changed = True

    def _finish(self, op: ir.Operation) -> None:
        """Marks a loop or branch that has values of the host, so that it is not taken apart."""
        wide = [i for i, x in enumerate(op.results) if x in self.carried]
        self.known |= {op.results[i]: FULL[element_name(op.results[i])] for i in wide}
        if wide:
            mark_wide(op, wide)

    def _note_source(self, op: ir.Operation, raw: Interval | None) -> None:
        if len(op.results) != 1 or "f" in element_name(op.results[0]) or "complex" in element_name(op.results[0]):
            return
        (result,) = op.results
        if op.name in CONSTANTS and isinstance(result.type, ir.RankedTensorType):
            limits = LIMITS.get(element_name(result))
            if prod(result.type.shape) <= LARGEST_COPY or (limits and raw and not raw.within(limits)):
                self.sources[result] = raw or ZERO
        elif short_name(op) == "iota":
            self.sources[result] = raw or ZERO
        elif op.name in MOVES and op.operands[0] in self.sources:
            self.sources[result] = self.sources[op.operands[0]]
        if result in self.sources:
            self.known[result] = self.sources[result]

    def _reason(self, op: ir.Operation, raw: Interval | None, in_full: set[Value]) -> str:
        """Why the host must compute an op; "" if the device may."""
        if not self._can_move(op):
            return ""
        if lacks_form(op):
            return NO_FORM
        name, (elements, _) = short_name(op), _parts(op)
        if any(map(self._needs_64, elements)):
            return READS
        if name == "bitcast_convert":
            return MAKES
        low_bits = name == "and" and in_full.isdisjoint(op.results)
        if any(map(self._is_large, op.operands)) and not low_bits and not self._nearest_does(op):
            return READS
        return MAKES if is_wide(op, raw, in_full) and (self.every or self._leaves_nearly_always(op)) else ""

    def _can_move(self, op: ir.Operation) -> bool:
        """Whether the host can compute an op on 64-bit integers. A float64 of the device has only 32 bits, so the host
        makes no integer of it."""
        if not any(element_name(x) in FULL for x in (*op.operands, *op.results)):
            return False
        if not len(op.results) or op.results[0] in self.sources:
            return False
        if short_name(op) == "convert" and element_name(op.operands[0]) == "f64":
            x = op.operands[0]
            if isinstance(x.owner, ir.Block) or not is_marked(x.owner):
                return False
        if short_name(op) == "convert" and element_name(op.results[0]) in FLOATS and op.operands[0] in self.sources:
            return False
        return function_of(op) is not None

    def _nearest_does(self, op: ir.Operation) -> bool:
        """Whether constants beyond 32 bits may become the nearest values in 32 bits, as on the device: such as the
        limits of a clamp, and the first value of a maximum over some elements."""
        name, given = short_name(op), [self.known.get(x) or LIMITS.get(element_name(x), ZERO) for x in op.operands]
        if name in ("reduce", "reduce_window"):
            pads, sizes = attrs.ints(op, "padding") or [], attrs.ints(op, "window_dimensions") or []
            largest = [max(pads[2 * i : 2 * i + 2], default=0) for i in range(len(sizes))]
            if 0 in op.operands[0].type.shape or any(map(operator.ge, largest, sizes)):
                return False
            name = body_op(op)
        if name not in ("clamp", "maximum", "minimum"):
            return False
        values = RULES[name](given)
        return values is not None and values.within(LIMITS[element_name(op.results[0])])

    def _leaves_nearly_always(self, op: ir.Operation) -> bool:
        name = short_name(op)
        if name in ("not", "negate"):
            return element_name(op.results[0]) == "ui64"
        count = self.sources.get(op.operands[1]) if name == "shift_left" else None
        return count is not None and count.low >= FAR

    def _mark_between(self, ops: Sequence[ir.Operation]) -> None:
        """Marks the ops that read what the host makes, and make what the host reads."""
        place = {result: i for i, op in enumerate(ops) for result in op.results}
        before, after = [False] * len(ops), [False] * len(ops)
        given = [[place[x] for x in read_by(op) if x in place] for op in ops]
        can = [not is_marked(op) and op.name not in (LOOP, *BRANCHES) and len(op.results) > 0 for op in ops]
        can = [may and (self._can_move(op) or _is_logic(op)) for may, op in zip(can, ops, strict=True)]
        host = [is_marked(op) and op.name not in (LOOP, *BRANCHES) for op in ops]
        for i in range(len(ops)):
            before[i] = any(host[j] or (can[j] and before[j]) for j in given[i])
        for i in reversed(range(len(ops))):
            if host[i] or (can[i] and after[i]):
                for j in given[i]:
                    after[j] = True
        for i, op in enumerate(ops):
            if can[i] and before[i] and after[i]:
                self._mark(op, BETWEEN)

    def _give_constants(self, body: ir.Block) -> None:
        """Lets ops of the host read copies of constants, so that these do not come from the device. Loops, branches and
        results get copies of constants beyond 32 bits."""
        copies: dict[Value, Value] = {}
        ops = [op.operation for op in body.operations]
        for op in ops:
            is_control = op.name in (LOOP, *BRANCHES) or op == ops[-1]
            if not is_control and not is_marked(op):
                continue
            for i, x in enumerate(op.operands):
                if self._is_large(x) if is_control else x in self.sources:
                    op.operands[i] = self._copy(x, op, copies)

    def _copy(self, x: Value, reader: ir.Operation, copies: dict[Value, Value]) -> Value:
        if x not in copies:
            made = x.owner.operation
            given = [self._copy(each, reader, copies) for each in made.operands]
            with made.location:
                copy = made.clone(ir.InsertionPoint(reader)).operation
            for i, each in enumerate(given):
                copy.operands[i] = each
            mark(copy)
            copies[x] = copy.results[0]
            self.sources[copy.results[0]] = self.sources[x]
        return copies[x]

    def _give_to_device(self, body: ir.Block) -> None:
        """Puts a check before each op of the device that reads integers of the host which may need 64 bits.

        Random numbers in float64 are made of bits, and are below 1. They stay below 1 in float32.
        """
        ops = [op.operation for op in body.operations]
        for op in ops[:-1]:
            if is_marked(op) or op.name in (LOOP, *BRANCHES):
                continue
            elements, positions = _parts(op)
            for x in [x for x in read_by(op) if self._needs_64(x) or _has_bits_of_float64(x)]:
                only_position = x in positions and x not in elements
                way = NEAREST if only_position else IN_32_BITS if self._needs_64(x) else TOWARD_ZERO
                new = _given(x, op, way)
                for each in (op, *nested(op)):
                    for i, operand in enumerate(each.operands):
                        if operand == x:
                            each.operands[i] = new


def _parts(op: ir.Operation) -> tuple[list[Value], list[Value]]:
    """The operands that have elements, and those that are positions."""
    given, of_positions = list(op.operands), POSITIONS.get(short_name(op), slice(0, 0))
    positions = range(len(given))[of_positions]
    return [x for i, x in enumerate(given) if i not in positions], given[of_positions]


def _given(x: Value, reader: ir.Operation, target: str) -> Value:
    """A value of the host as the device takes it."""
    with ir.InsertionPoint(reader), reader.location:
        attributes = {"call_target_name": ir.StringAttr.get(target), "tt.reader": ir.StringAttr.get(named(reader))}
        made = ir.Operation.create("stablehlo.custom_call", [x.type], [x], attributes)
    mark(made)
    return made.results[0]


def _has_bits_of_float64(x: Value) -> bool:
    """Whether the host makes a float64 of the bits of an integer."""
    is_argument = isinstance(x.owner, ir.Block)
    return not is_argument and element_name(x) == "f64" and short_name(x.owner) == "bitcast_convert"


def _is_logic(op: ir.Operation) -> bool:
    """Whether an op computes with booleans, such as the results of comparisons."""
    return short_name(op) in ("and", "or", "xor", "not") and element_name(op.results[0]) == "i1"


def _blocks(body: ir.Block) -> Iterator[ir.Block]:
    """A block, and those of the loops and branches in it."""
    yield body
    for op in [op.operation for op in body.operations]:
        if op.name in (LOOP, *BRANCHES):
            for region in op.regions:
                yield from _blocks(region.blocks[0])
