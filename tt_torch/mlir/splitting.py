"""Splits a StableHLO program that needs the host into device programs, and a flow that says when each of them runs.

The host decides how often a loop runs if the number of steps depends on values. It also computes what only the host can
compute: see `stablehlo/host_calls.py`. All other ops go into as few device programs as possible. For

    %0 = add %x, %y    %1 = custom_call @lapack_sgeqrf_ffi(%0)    %2 = sine %x    %3 = multiply %1, %2

there are two: one that computes %0, and one that computes %2 and %3, after the host has computed %1.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir

from tt_torch.errors import UnsupportedOpError
from tt_torch.flow import MAIN, Branch, Flow, Loop, Run, Step
from tt_torch.mlir.context import describe
from tt_torch.mlir.functions import (
    argument_kinds,
    block,
    captured_by,
    main,
    mark_arguments,
    nested,
    program_of,
    read_by,
    returned,
)
from tt_torch.mlir.mesh import mesh_of
from tt_torch.mlir.stablehlo.flatten import BRANCHES, ONE_BRANCH, inline_calls, take_control_apart
from tt_torch.mlir.stablehlo.host_calls import host_call
from tt_torch.mlir.stablehlo.integer_rows import is_marked
from tt_torch.mlir.stablehlo.loops import LOOP, states_of, unrolled
from tt_torch.mlir.stablehlo.normalize import CONSTANTS
from tt_torch.mlir.ttir.from_stablehlo.composites import is_known
from tt_torch.mlir.types import Op, Value


def split(module: ir.Module) -> tuple[Flow, dict[str, ir.Module]]:
    """The flow of a program, and its device programs by their names. `module` is changed.

    Raises UnsupportedOpError for functions that call each other in a circle. It is also raised for a program of several
    chips that needs the host, because the host would give all chips the values of the first chip.
    """
    if any(_may_need_host(op) for op in nested(module)):
        inline_calls(module, is_known)
        whole = _as_one_program(module)
        if whole is None and mesh_of(module.operation) != (1, 1):
            raise _needs_host_on_a_mesh(module)
        if whole is None:
            splitter = _Splitter([f for f in module.body.operations if f.operation != main(module).operation])
            return splitter.flow(module), splitter.programs
        module = whole
    taken, given = len(main(module).arguments), len(returned(module))
    results = list(range(taken, taken + given))
    return Flow(taken, [Run(MAIN, list(range(taken)), given)], results), {MAIN: module}


def _needs_host_on_a_mesh(module: ir.Module) -> UnsupportedOpError:
    op = next(op for op in nested(main(module)) if needs_host(op))
    what = "a program for several chips in which the host computes or decides nothing"
    return UnsupportedOpError(op.name, "stablehlo", describe(op.location), f"it takes {what}")


def _may_need_host(op: ir.Operation) -> bool:
    return op.name == LOOP or _has_host_step(op)


def _has_host_step(op: ir.Operation) -> bool:
    """Whether the host decides about an op, or computes it, whatever is around it."""
    return ONE_BRANCH in op.attributes or is_marked(op) or host_call(op, []) is not None


def _as_one_program(module: ir.Module) -> ir.Module | None:
    """A copy of the module without loops and branches; None if the host must decide, or compute something."""
    if is_marked(main(module)) or any(map(_has_host_step, nested(main(module)))):
        return None
    with module.context, module.operation.location:
        copy = ir.Module.create()
        for name in module.operation.attributes:  # such as the mesh
            copy.operation.attributes[name] = module.operation.attributes[name]
        with ir.InsertionPoint(copy.body):
            for function in module.body.operations:
                function.operation.clone()
    try:
        take_control_apart(copy)
    except UnsupportedOpError:
        return None
    return copy


def needs_host(op: Op) -> bool:
    """Whether an op is a step of a flow: a loop that cannot be unrolled, a branch of PyTorch's `cond`, an op that the
    host computes, or a loop or branch that has values of the host, or an op of these kinds inside."""
    op = op.operation
    if _has_host_step(op) or (op.name in (LOOP, *BRANCHES) and any(map(needs_host, nested(op)))):
        return True
    if op.name != LOOP:
        return False
    try:
        unrolled(op)
    except UnsupportedOpError:
        return True
    return False


def _steps(loop: ir.Operation) -> int | None:
    """The number of steps of a loop, if it follows from constants."""
    try:
        return len(states_of(loop))
    except UnsupportedOpError:
        return None


class _Splitter:
    """Collects the device programs of a module and of the regions in it. `functions` are the bodies of composites."""

    def __init__(self, functions: Sequence[Op]) -> None:
        self.functions, self.programs = functions, dict[str, ir.Module]()

    def flow(self, module: ir.Module) -> Flow:
        """The flow of a module, which is changed."""
        take_control_apart(module, needs_host)
        return _Block(self, module).flow()

    def program(self, ops: Sequence[ir.Operation], arguments: Sequence[Value], results: Sequence[Value]) -> ir.Module:
        """A module with copies of ops. It gets the functions only if there is a composite: they are decompositions."""
        inner = any(each.name == "stablehlo.composite" for op in ops for each in (op, *nested(op)))
        location = (ops[0] if ops else arguments[0]).location
        return program_of(ops, arguments, results, self.functions if inner else (), location)

    def add(self, module: ir.Module, roles: Sequence[str]) -> str:
        with module.context:
            mark_arguments(main(module), roles)
        name = f"part{len(self.programs)}"
        self.programs[name] = module
        return name


class _Block:
    """The ops of one module in stages. Each stage is one device program, and then steps of the host.

    An op is in the latest stage that its readers allow, so that few values wait between stages. Each program has its
    own copies of constants.
    """

    def __init__(self, splitter: _Splitter, module: ir.Module) -> None:
        *ops, _ = [op.operation for op in block(main(module)).operations]
        self.splitter, self.ops, self.returned = splitter, ops, returned(module)
        self.arguments = list(block(main(module)).arguments)
        self.roles = dict(zip(self.arguments, argument_kinds(main(module)), strict=True))
        self.reads = [read_by(op) for op in ops]
        self.producer = {result: i for i, op in enumerate(ops) for result in op.results}
        self.readers: dict[Value, list[int]] = {}
        for i, reads in enumerate(self.reads):
            for x in reads:
                self.readers.setdefault(x, []).append(i)
        self.is_step = [needs_host(op) for op in ops]
        self.stage = self._stages()
        self.numbers = {x: i for i, x in enumerate(self.arguments)}
        self.made = Flow(len(self.arguments), [], [])
        self.count = len(self.arguments)

    def flow(self) -> Flow:
        for stage in sorted(set(self.stage.values())):
            here = [i for i in sorted(self.stage) if self.stage[i] == stage]
            self._run([i for i in here if not self.is_step[i]])
            for i in here:
                if self.is_step[i]:
                    self._step(self.ops[i])
        self.made.results.extend(self.numbers[x] for x in self.returned)
        return self.made

    def _stages(self) -> dict[int, int]:
        """The stage of each op whose results are read."""
        first = list[int]()
        for reads in self.reads:
            before = [self.producer[x] for x in reads if x in self.producer]
            goes_back = not self.is_step[len(first)]  # steps of the host follow each other in one stage
            first.append(max((first[i] + (self.is_step[i] and goes_back) for i in before), default=0))
        end = max((first[i] + 1 for i in range(len(first)) if self.is_step[i]), default=0)
        stage = {self.producer[x]: end for x in self.returned if x in self.producer}
        for i in reversed(range(len(self.ops))):
            if i not in stage:
                continue
            if self.is_step[i]:
                stage[i] = first[i]
            for x in self.reads[i]:
                if x in self.producer:
                    stage[self.producer[x]] = min(stage.get(self.producer[x], end), stage[i])
        return stage

    def _run(self, here: list[int]) -> None:
        """Adds the program of a stage, if another stage, the host or the caller reads a value of it."""
        results = [x for i in here for x in self.ops[i].results if self._is_read_outside(x, set(here))]
        if not results:
            return
        constants = [i for i in self._constants({x for i in here for x in self.reads[i]}) if i not in here]
        own = {x for i in (*constants, *here) for x in self.ops[i].results}
        arguments = list(dict.fromkeys(x for i in here for x in self.reads[i] if x not in own))
        module = self.splitter.program([self.ops[i] for i in (*constants, *here)], arguments, results)
        name = self.splitter.add(module, [self.roles.get(x, "input") for x in arguments])
        self._add(Run(name, [self.numbers[x] for x in arguments], len(results)), results)

    def _is_read_outside(self, x: Value, here: set[int]) -> bool:
        """Whether a value of a stage is needed outside of the stage. Programs and regions copy constants."""
        readers = [i for i in self.readers.get(x, ()) if i in self.stage and i not in here]
        if self.ops[self.producer[x]].name in CONSTANTS:
            readers = [i for i in readers if self.is_step[i] and x in list(self.ops[i].operands)]
        return bool(readers) or x in self.returned

    def _constants(self, values: set[Value]) -> list[int]:
        """The constants among the values, by the positions of their ops."""
        found = {self.producer[x] for x in values if x in self.producer}
        return sorted(i for i in found if self.ops[i].name in CONSTANTS)

    def _add(self, step: Step, results: Sequence[Value]) -> None:
        self.made.steps.append(step)
        self.numbers |= {x: self.count + i for i, x in enumerate(results)}
        self.count += step.results

    def _step(self, op: ir.Operation) -> None:
        if op.name == LOOP:
            self._loop(op)
        elif op.name in BRANCHES:
            self._branch(op)
        else:
            called = host_call(op, [self.numbers[x] for x in op.operands])
            assert called is not None
            self._add(called, list(op.results))

    def _loop(self, op: ir.Operation) -> None:
        """Values that a loop only passes on are no results of its body. They keep their number and their role."""
        condition, body = (region.blocks[0] for region in op.regions)
        *_, last = body.operations
        changed = [i for i, x in enumerate(last.operands) if x != body.arguments[i]]
        captured, constants = self._captured(op)
        values = [*op.operands, *captured]
        roles = [self.roles.get(x, "input") for x in values]
        for i in changed:
            roles[i] = "input"
        steps = _steps(op)
        decide = None if steps is not None else self._region(condition, captured, constants, roles)
        do = self._region(body, captured, constants, roles, changed)
        self._add(Loop([self.numbers[x] for x in values], decide, do, changed, steps), [op.results[i] for i in changed])
        for i, x in enumerate(op.results):
            if i not in changed:
                self.numbers[x] = self.numbers[op.operands[i]]
                self.roles[x] = roles[i]

    def _branch(self, op: ir.Operation) -> None:
        """Adds a step for a branch. The first region of `if` is for true, which is 1, so its regions are reversed."""
        captured, constants = self._captured(op)
        regions = [region.blocks[0] for region in op.regions]
        roles = [self.roles.get(x, "input") for x in captured]
        order = regions if op.name == "stablehlo.case" else regions[::-1]
        branches = [self._region(each, captured, constants, roles) for each in order]
        inputs = [self.numbers[x] for x in (op.operands[0], *captured)]
        self._add(Branch(inputs, branches), list(op.results))

    def _captured(self, op: ir.Operation) -> tuple[list[Value], list[ir.Operation]]:
        """The values from outside that the regions of an op read, and the constants among them."""
        read = captured_by(op)
        constants = self._constants(set(read))
        return [x for x in read if self.producer.get(x) not in constants], [self.ops[i] for i in constants]

    def _region(
        self,
        body: ir.Block,
        captured: Sequence[Value],
        constants: Sequence[ir.Operation],
        roles: Sequence[str],
        results: Sequence[int] | None = None,
    ) -> Flow:
        """The flow of a region. `results` are the positions of the results that are needed; None means all results."""
        *ops, last = [op.operation for op in body.operations]
        returned = [last.operands[i] for i in (range(len(last.operands)) if results is None else results)]
        arguments = [*body.arguments, *captured]
        module = self.splitter.program([*constants, *ops], arguments, returned)
        with module.context:
            mark_arguments(main(module), roles)
        return self.splitter.flow(module)
