"""Runs flows: device programs, loops and branches that the host decides, and ops of the host.

This imports no compiler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from tt_torch.driver.executor import Executor, eager_device
from tt_torch.driver.host_functions import FUNCTIONS, OF_ALL_TYPES
from tt_torch.dynamo.calls import Check, passed
from tt_torch.errors import KernelError, PackageError
from tt_torch.flow import MAIN, Branch, Flow, HostCall, Loop, Run, Step

# What a function of the host raises for operands or options that a file should not have.
FAILURES = (
    RuntimeError, TypeError, ValueError, LookupError, AttributeError, OverflowError, ZeroDivisionError, MemoryError,
)  # fmt: skip
NARROW = (torch.bfloat16, torch.float16)  # LAPACK has no functions for them


class FlowRunner:
    """Takes the inputs of a flow, and returns its results. Tensors stay on the device between programs."""

    def __init__(self, flow: Flow, executors: Mapping[str, Executor]) -> None:
        self.flow, self.executors = flow, executors
        self._constants: dict[int, list[torch.Tensor]] = {}  # what steps of the host without inputs have made
        self._last = {id(each): _last_readers(each) for each in _with_inner(flow)}
        _keep_on_device(flow, executors, inside=False)

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        made, results = self._run(self.flow, inputs), list[torch.Tensor]()
        known = {id(x) for x in (*inputs, *(x for each in self._constants.values() for x in each))}
        for x in made:
            # A loop without a step gives a tensor that is an input or another result. Each result has its own memory.
            results.append(x.cpu().clone() if id(x) in known else x.cpu())
            known.add(id(x))
        return results

    def _run(self, flow: Flow, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        values = dict(enumerate(inputs))
        count = flow.inputs
        for number, step in enumerate(flow.steps):
            given = [values[i] for i in step.inputs]
            for i in self._last[id(flow)][number]:
                del values[i]  # a large value must not stay in the device's memory while a loop runs
            values.update(enumerate(self._results(step, given), count))
            count += step.results
        return [values[i] for i in flow.results]

    def _results(self, step: Step, given: list[torch.Tensor]) -> Sequence[torch.Tensor]:
        if isinstance(step, Run):
            return self.executors[step.program](given)
        if isinstance(step, HostCall):
            return on_host(step, given) if given else self._constant(step)
        if isinstance(step, Branch):
            chosen = _number(given.pop(0))
            last = len(step.branches) - 1
            return self._run(step.branches[chosen if 0 <= chosen < last else last], given)
        return self._loop(step, given)

    def _constant(self, step: HostCall) -> list[torch.Tensor]:
        """The results of a step without inputs, which are the same in all calls."""
        if id(step) not in self._constants:
            self._constants[id(step)] = on_host(step, [])
        return self._constants[id(step)]

    def _loop(self, loop: Loop, values: list[torch.Tensor]) -> list[torch.Tensor]:
        step = 0
        while _number(self._run(loop.condition, values)[0]) if loop.condition else step < (loop.steps or 0):
            for position, new in zip(loop.changed, self._run(loop.body, values), strict=True):
                values[position] = new
            step += 1
        return [values[position] for position in loop.changed]


class CheckedRunner:
    """Runs programs of a graph, and passes their last results to checks, which may raise an error. `flow` says when the
    programs run; None if there is only one."""

    def __init__(self, flow: Flow | None, executors: Mapping[str, Executor], checks: Sequence[Check]) -> None:
        self.flow, self.executors, self.checks = flow, executors, checks
        self._run = FlowRunner(flow, executors) if flow else executors[MAIN]

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return passed(self._run(inputs), self.checks)


def on_host(step: HostCall, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The results of an op of the host. Raises KernelError if the host cannot compute it, PackageError if the op has
    another number of results than the package says, and InexactError if the device would read more than 32 bits."""
    try:
        results = _computed(step, [x.detach().cpu() for x in given])
    except FAILURES as error:
        raise KernelError(f"{step.op} at {step.location or 'an unknown line'} failed on the host: {error}") from error
    if len(results) != step.results:
        raise PackageError(f"the package says that {step.op} has {step.results} results, and it has {len(results)}")
    return [torch.view_as_real(x.resolve_conj()) if x.is_complex() else x for x in results]


def _computed(step: HostCall, values: list[torch.Tensor]) -> Sequence[torch.Tensor]:
    for position in step.complex_inputs:
        values[position] = torch.view_as_complex(values[position])
    narrow = None if step.op in OF_ALL_TYPES else next((x.dtype for x in values if x.dtype in NARROW), None)
    values = [x.float() if narrow and x.dtype in NARROW else x for x in values]
    results: Sequence[torch.Tensor] = FUNCTIONS[step.op](*values, **step.options)
    return [x.to(narrow) if narrow and x.is_floating_point() else x for x in results]


def _number(x: torch.Tensor) -> int:
    """The only element of a condition or of the number of a branch. Raises PackageError for other tensors."""
    if x.numel() != 1:
        raise PackageError(f"a condition in the package has the shape {tuple(x.shape)}; it must have one element")
    return int(x.item())


def _with_inner(flow: Flow) -> list[Flow]:
    return [flow, *(each for inner in flow.inner() for each in _with_inner(inner))]


def _last_readers(flow: Flow) -> list[list[int]]:
    """For each step, the values that nothing reads after it."""
    last = {i: number for number, step in enumerate(flow.steps) for i in step.inputs if i not in flow.results}
    return [[i for i, reader in last.items() if reader == number] for number in range(len(flow.steps))]


def _keep_on_device(flow: Flow, executors: Mapping[str, Executor], inside: bool) -> None:
    """Lets programs leave results on the device if other programs read them. If `inside`, other programs also read
    the results of the flow."""
    read = {i for step in flow.steps if not isinstance(step, HostCall) for i in step.inputs}
    read |= set(flow.results) if inside else set()
    count = flow.inputs
    for step in flow.steps:
        if isinstance(step, Run):
            devices = [eager_device() if count + i in read else torch.device("cpu") for i in range(step.results)]
            executors[step.program].compiled.output_devices = devices
        elif isinstance(step, Branch):
            for branch in step.branches:
                _keep_on_device(branch, executors, inside=True)
        elif isinstance(step, Loop):
            _keep_on_device(step.body, executors, inside=True)
            if step.condition:
                _keep_on_device(step.condition, executors, inside=False)
        count += step.results
