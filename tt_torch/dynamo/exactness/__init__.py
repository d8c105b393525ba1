"""Integer results are exact, although the device's integers have 32 bits.

A program is exact on the device while its integer inputs lie within limits, which are found by interval analysis
(`analysis.py`). A call outside of them runs in eager PyTorch. What no limit makes exact is marked, in a node's
`meta["inexact"]`, as an op for the host; int8 and int16, which the device computes as int32, are wrapped to their size.
"""

from __future__ import annotations

import copy
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo.exactness.analysis import NARROW, Analysis, Limit
from tt_torch.dynamo.exactness.interval import Interval, of_dtype, of_values
from tt_torch.dynamo.passes.rewriting import call, value

aten, prims = torch.ops.aten, torch.ops.prims
Runner = Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]


class ExactnessWarning(UserWarning):
    """A call ran in eager PyTorch, because the device would not have computed its integers exactly."""


@dataclass
class Plan:
    """When a program is exact: `limits` by input position; `flagged` if its last output tells so too."""

    limits: dict[int, Limit]
    flagged: bool = False


def make_exact(gm: GraphModule, flag: bool = True) -> tuple[GraphModule, Plan]:
    """A copy of a functional graph whose integers are exact wherever the plan says so.

    Nodes that the device cannot compute exactly are marked, narrow integers wrapped; with `flag` there is one more
    output, which is true while all floats that become integers fit into 32 bits.
    """
    gm = GraphModule(gm, copy.deepcopy(gm.graph))
    analysis = Analysis(gm)
    limits = analysis.limits()
    raw = analysis.raw(limits)
    for node, reason in analysis.inexact(raw).items():
        node.meta["inexact"] = reason
    for node in analysis.nodes:
        _wrap(node, raw[node])
    flagged = flag and _add_flag(gm, list(analysis.unknown_casts))
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    return gm, Plan({placeholders.index(n): limit for n, limit in analysis.explained(limits).items()}, flagged)


def _wrap(node: Node, raw: Any) -> None:
    """Wraps int8 and int16 as PyTorch does: the lowest bits count."""
    bits = NARROW.get(value(node).dtype) if isinstance(value(node), torch.Tensor) else None
    if node.op != "call_function" or bits is None or type(raw) is tuple or raw.within(of_dtype(value(node).dtype)):
        return
    users, half = list(node.users), 1 << (bits - 1)
    with node.graph.inserting_after(node):
        first = call(node, prims.convert_element_type.default, node, torch.int32)
    steps = [
        (aten.add.Scalar, half),
        (aten.bitwise_and.Scalar, 2 * half - 1),
        (aten.sub.Scalar, half),
        (prims.convert_element_type.default, value(node).dtype),
    ]
    last = first
    for target, argument in steps:
        with node.graph.inserting_after(last):
            last = call(last, target, last, argument)
            last.meta["stack_trace"] = node.meta.get("stack_trace")
    for user in users:
        user.replace_input_with(node, last)


def _add_flag(gm: GraphModule, casts: Sequence[Node]) -> bool:
    """An output that is true if all that these casts read fits into 32 bits. Whether there is one."""
    if not casts:
        return False
    (output,) = (n for n in gm.graph.nodes if n.op == "output")
    with gm.graph.inserting_before(output):
        fit = None
        for node in casts:
            size = call(node, aten.abs.default, node.args[0])
            fits = call(size, aten.all.default, call(size, aten.lt.Scalar, size, float(2**31)))
            fit = fits if fit is None else call(fits, aten.logical_and.default, fit, fits)
    output.args = ((*output.args[0], fit),)
    return True


class ExactRunner:
    """Runs a program on the device while that is exact, else the graph in eager PyTorch on the host."""

    def __init__(self, runner: Runner, eager: Callable[..., Any], plan: Plan, resident: Sequence[int]) -> None:
        self._runner, self._eager, self._plan = runner, eager, plan
        self._resident = frozenset(resident)
        self._seen: dict[int, tuple[Any, ...]] = {}  # resident inputs that were found to fit
        self._warned = False

    def __call__(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        for position, limit in self._plan.limits.items():
            if not self._fits(position, inputs[position], limit.interval):
                return self._on_host(inputs, _excess(inputs[position], limit))
        results = self._runner(inputs)
        if not self._plan.flagged:
            return results
        if not results[-1]:
            return self._on_host(inputs, "floats that become integers do not fit into 32 bits")
        return results[:-1]

    def _fits(self, position: int, x: torch.Tensor, interval: Interval) -> bool:
        if position not in self._resident or x.is_inference():
            return of_values(x).within(interval)
        now, (known, *seen) = [x.data_ptr(), x._version], self._seen.get(position, (None,))
        if known is not None and known() is x and seen == now:
            return True
        fits = of_values(x).within(interval)
        if fits:
            self._seen[position] = (weakref.ref(x), *now)
        return fits

    def _on_host(self, inputs: Sequence[torch.Tensor], reason: str) -> Sequence[torch.Tensor]:
        if not self._warned:
            self._warned = True
            warnings.warn(ExactnessWarning(f"a call runs in eager PyTorch: {reason}"), stacklevel=2)
        with torch.no_grad():
            return list(self._eager(*inputs))


def _excess(x: torch.Tensor, limit: Limit) -> str:
    low, high = of_values(x)
    because = f", beyond which {limit.cause} may leave the device's 32 bits" if limit.cause else ""
    span = f"{limit.interval.low:.0f} .. {limit.interval.high:.0f}"
    return f"{limit.name} ({x.dtype}) holds {low:.0f} .. {high:.0f}; exact on the device is {span}{because}"
