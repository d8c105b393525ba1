"""Programs in which the host decides what the device does next, as data.

TTNN has no loops, and no matrix factorizations. So a model that needs them becomes several device programs, and a flow
says when each of them runs. The values of a flow have numbers: first its inputs, then the results of each step.

For `while x < 100: x = x * 2`, the flow has one input, number 0, and one step, `Loop([0], condition, body, [0])`. Its
result is number 1. `condition` is a flow that runs the program of `x < 100`. `body` is a flow that runs the program of
`x * 2`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

MAIN = "main"  # the name of the program of a model that has only one


@dataclass(frozen=True)
class Run:
    """Runs a device program for values, which are its inputs in order."""

    program: str
    inputs: list[int]
    results: int


@dataclass(frozen=True)
class HostCall:
    """Computes an op on the host, in PyTorch. `options` are the options of the op's function. `reason` tells users why
    the host computes the op. `bytes` is the size of its operands and results.

    A complex number among the inputs is a pair of real ones in a last dimension of size 2, if its position is in
    `complex_inputs`. Complex results become such pairs.
    """

    op: str
    options: dict[str, Any]
    inputs: list[int]
    results: int
    complex_inputs: list[int]
    location: str
    reason: str
    bytes: int


@dataclass(frozen=True)
class Loop:
    """Runs `body` as long as `condition` gives true, or `steps` times.

    Both flows take as many values as there are `inputs`. `body` gives new values for the positions in `changed`. The
    results are the last values at these positions.
    """

    inputs: list[int]
    condition: Flow | None
    body: Flow
    changed: list[int]
    steps: int | None = None

    @property
    def results(self) -> int:
        return len(self.changed)


@dataclass(frozen=True)
class Branch:
    """Runs one of the branches. The first input is the number of the branch, and the branch takes all other inputs.

    A number beyond the branches chooses the last branch, as the specification of StableHLO says.
    """

    inputs: list[int]
    branches: list[Flow]

    @property
    def results(self) -> int:
        return len(self.branches[0].results)


Step: TypeAlias = Run | HostCall | Loop | Branch


@dataclass(frozen=True)
class Flow:
    """Steps, and the numbers of the values that are the results."""

    inputs: int
    steps: list[Step]
    results: list[int]

    def inner(self) -> list[Flow]:
        """The flows of its loops and branches."""
        found: list[Flow] = []
        for step in self.steps:
            if isinstance(step, Loop):
                found += [step.condition, step.body] if step.condition else [step.body]
            elif isinstance(step, Branch):
                found += step.branches
        return found

    def all_steps(self) -> list[Step]:
        """All steps, also those of loops and branches."""
        return [*self.steps, *(step for flow in self.inner() for step in flow.all_steps())]


def from_json(data: Any, arguments: dict[str, tuple[int, int]]) -> Flow:
    """The flow in JSON that `dataclasses.asdict` has made. `arguments` has each program's numbers of inputs and
    results.

    Raises ValueError, TypeError or KeyError if the JSON is no flow.
    """
    flow = Flow(_int(data["inputs"]), [], _ints(data["results"]))
    count = flow.inputs
    for each in data["steps"]:
        step = _step(each, arguments)
        _require(all(0 <= i < count for i in step.inputs), "a step reads an unknown value")
        count += step.results
        flow.steps.append(step)
    _require(flow.inputs >= 0 and all(0 <= i < count for i in flow.results), "a result is an unknown value")
    return flow


def _step(data: Any, arguments: dict[str, tuple[int, int]]) -> Step:
    inputs = _ints(data["inputs"])
    if "program" in data:
        run = Run(str(data["program"]), inputs, _int(data["results"]))
        _require(arguments.get(run.program) == (len(inputs), run.results), f"{run.program} has other inputs or results")
        return run
    if "op" in data:
        op, options, complex_inputs = str(data["op"]), dict(data["options"]), _ints(data["complex_inputs"])
        where, why = str(data["location"]), str(data["reason"])
        return HostCall(op, options, inputs, _int(data["results"]), complex_inputs, where, why, _int(data["bytes"]))
    if "body" in data:
        condition = None if data["condition"] is None else from_json(data["condition"], arguments)
        steps = None if data["steps"] is None else _int(data["steps"])
        loop = Loop(inputs, condition, from_json(data["body"], arguments), _ints(data["changed"]), steps)
        _check_loop(loop)
        return loop
    branch = Branch(inputs, [from_json(each, arguments) for each in data["branches"]])
    forms = {(each.inputs, len(each.results)) for each in branch.branches}
    _require(len(forms) == 1 and {taken for taken, _ in forms} == {len(inputs) - 1}, "branches are of different forms")
    return branch


def _check_loop(loop: Loop) -> None:
    _require((loop.condition is None) == (loop.steps is not None), "a loop needs a condition or a number of steps")
    _require(loop.body.inputs == len(loop.inputs), "the body of a loop takes other values")
    if loop.condition:
        form = loop.condition.inputs, len(loop.condition.results)
        _require(form == (len(loop.inputs), 1), "the condition of a loop has another form")
    places = sorted({i for i in loop.changed if 0 <= i < len(loop.inputs)})
    _require(places == sorted(loop.changed) and len(places) == len(loop.body.results), "a loop changes unknown values")


def _ints(values: Sequence[Any]) -> list[int]:
    return [_int(value) for value in values]


def _int(value: Any) -> int:
    _require(type(value) is int, f"{value!r} is no integer")
    return int(value)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
