"""Makes integer results exact, although the device's integers have 32 bits.

A program is exact on the device while its integer inputs are within limits, which interval analysis finds
(`analysis.py`). A call with other inputs runs in eager PyTorch. For example, `x * 3` is exact for x between -715827882
and 715827882. An op that no limit makes exact gets `meta["inexact"]` and runs on the host. int8 and int16 are
computed as int32; `mlir/stablehlo/normalize.py` wraps the results.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from tt_torch import user_code
from tt_torch.dynamo import facts
from tt_torch.dynamo.exactness.analysis import Analysis, Limit, Raw
from tt_torch.dynamo.exactness.interval import Interval, of_values
from tt_torch.dynamo.facts import Fact
from tt_torch.dynamo.passes.rewriting import arguments, call, copied, user_line, value
from tt_torch.dynamo.types import Arguments, Function
from tt_torch.errors import KernelError
from tt_torch.torch_private.tensors import version

aten, prims = torch.ops.aten, torch.ops.prims
Runner = Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]


class ExactnessWarning(UserWarning):
    """A call ran in eager PyTorch, because the device would not have computed its integers exactly."""


@dataclass
class Plan:
    """The conditions under which a program is exact.

    `limits` are by position of the input. If `flagged`, the last output of the program must be true. If there is
    `check`, its only output must be true; it is a graph of the inputs at the positions `checked`.
    """

    limits: dict[int, Limit]
    flagged: bool = False
    check: GraphModule | None = None
    checked: list[int] = field(default_factory=list)


class Float64Warning(UserWarning):
    """A program computes in float64, but the device computes in float32."""


def make_exact(gm: GraphModule, strict: bool, flag: bool = True) -> Plan:
    """Changes a functional graph so that its integers are exact under the conditions of the plan, which is returned.

    Nodes that the device cannot compute exactly are marked; with `strict`, also those of float64 and float16. Some
    values are known only on the device: floats that become integers, and indices. If they may be out of range, an extra
    output tells it with `flag`; without, an extra graph does.
    """
    doubles = _varying(gm.graph, torch.float64)
    for node in [*doubles, *_varying(gm.graph, torch.float16)] if strict else ():
        node.meta["inexact"] = "the device computes float64 and float16 in float32"
    if doubles and not strict:
        first = f"{doubles[0].target} at {user_line(doubles[0])}"
        advice = 'CompilerConfig(fallback="strict-dtype") runs such ops on the host'
        user_code.warn(Float64Warning(f"float64 is computed in float32, first by {first}; {advice}"))
    analysis = Analysis(gm)
    limits = analysis.limits()
    raw = analysis.raw(limits)
    for node, reason in analysis.inexact(raw).items():
        node.meta["inexact"] = reason
    flagged = _add_flag(gm, analysis, raw)
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    plan = Plan({placeholders.index(n): limit for n, limit in analysis.explained(limits).items()}, flagged)
    if flagged and not flag:
        plan.flagged, plan.check = False, copied(gm)
        _keep_outputs(plan.check.graph, slice(-1, None))
        plan.checked = _drop_unused_inputs(plan.check.graph)
        _keep_outputs(gm.graph, slice(-1))
    return plan


def _keep_outputs(graph: Graph, kept: slice) -> None:
    """Makes the graph return only some of its outputs, and removes ops that these do not need."""
    (output,) = graph.find_nodes(op="output")
    output.args = (tuple(output.args[0][kept]),)
    graph.eliminate_dead_code(lambda n: n.op in ("placeholder", "output"))  # also ops with effects


def _drop_unused_inputs(graph: Graph) -> list[int]:
    """Removes inputs without readers; returns the positions of the others."""
    inputs = list(enumerate(n for n in graph.nodes if n.op == "placeholder"))
    for _, node in inputs:
        if not node.users:
            graph.erase_node(node)
    return [i for i, node in inputs if node.users]


def _varying(graph: Graph, dtype: torch.dtype) -> list[Node]:
    """Ops that read or make tensors of a dtype and depend on inputs. Other ops are computed exactly at compile time.

    A scalar operand, such as a learning rate, does not count: as in PyTorch, it takes the dtype of the other operand.
    """
    found: dict[Node, None] = dict.fromkeys(n for n in graph.nodes if n.op == "placeholder")
    for node in graph.nodes:
        if node.op == "call_function" and any(n in found for n in node.all_input_nodes):
            found[node] = None

    def has(node: Node) -> bool:
        return "val" in node.meta and isinstance(value(node), torch.Tensor) and value(node).dtype is dtype

    def reads(node: Node) -> bool:
        return any(has(n) and value(n).dim() for n in node.all_input_nodes)

    return [n for n in found if n.op == "call_function" and (has(n) or reads(n))]


OUT_OF_RANGE = "a float does not fit into the integer that it becomes, or an index is out of range"


def _checks(gm: GraphModule, analysis: Analysis, raw: Raw) -> list[Node]:
    """Boolean scalars that must be true: floats that become integers fit into 32 bits, and indices are in range.

    Indices are only checked if there are several: the device combines them to one number, so an index that is out of
    range could hit another row.
    """
    checks = []
    for node in analysis.unknown_casts:
        size = call(node, aten.abs.default, node.args[0])
        checks.append(call(size, aten.lt.Scalar, size, float(2**31)))
    for node in [n for n in gm.graph.nodes if facts.of(n.target) & (Fact.PICKS | Fact.WRITES)]:
        given = _looked_up(arguments(node))
        for i, size in given if len(given) > 1 else []:
            if i in raw and not raw[i][0].within(Interval(-size, size - 1)):
                fits = (call(i, aten.ge.Scalar, i, -size), call(i, aten.lt.Scalar, i, size))
                checks.append(call(fits[0], aten.logical_and.default, *fits))
    return [call(check, aten.all.default, check) for check in checks]


def _looked_up(a: Arguments) -> list[tuple[Node, int]]:
    """The indices of an op with one index per dimension, and the sizes of these dimensions."""
    if not isinstance(a.get("indices"), (list, tuple)):
        return []
    return [(i, size) for i, size in zip(a["indices"], value(a["self"]).shape, strict=False) if i is not None]


def _add_flag(gm: GraphModule, analysis: Analysis, raw: Raw) -> bool:
    """Adds an output that is true if all checks are true. Returns whether there are checks."""
    (output,) = (n for n in gm.graph.nodes if n.op == "output")
    with gm.graph.inserting_before(output):
        checks = _checks(gm, analysis, raw)
        if not checks:
            return False
        flag = reduce(lambda a, b: call(a, aten.logical_and.default, a, b), checks)
    output.args = ((*output.args[0], flag),)
    return True


class ExactRunner:
    """Runs a program on the device if that is exact; otherwise runs the graph in eager PyTorch on the host."""

    def __init__(
        self,
        runner: Runner,
        eager: Function,
        plan: Plan,
        resident: Sequence[int],
        check: Runner | None = None,
    ) -> None:
        """`check` runs the graph `plan.check` before the program."""
        self._runner, self._eager, self._plan, self._check = runner, eager, plan, check
        self._resident = frozenset(resident)
        self._seen: dict[int, tuple[Any, ...]] = {}  # resident inputs that are known to fit
        self._warned = False

    def __call__(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        for position, limit in self._plan.limits.items():
            if not self._fits(position, inputs[position], limit.interval):
                return self._on_host(inputs, _excess(inputs[position], limit))
        try:
            if self._check and not self._check([inputs[i] for i in self._plan.checked])[0]:
                return self._on_host(inputs, OUT_OF_RANGE)
            results = self._runner(inputs)
        except KernelError as error:
            self._raise_as_eager(inputs, error)
            raise
        if not self._plan.flagged:
            return results
        if not results[-1]:
            return self._on_host(inputs, OUT_OF_RANGE)
        return results[:-1]

    def _fits(self, position: int, x: torch.Tensor, interval: Interval) -> bool:
        if position not in self._resident or x.is_inference():
            return of_values(x).within(interval)
        now, (known, *seen) = [x.data_ptr(), version(x)], self._seen.get(position, (None,))
        if known is not None and known() is x and seen == now:
            return True
        fits = of_values(x).within(interval)
        if fits:
            self._seen[position] = (weakref.ref(x), *now)
        return fits

    def _raise_as_eager(self, inputs: Sequence[torch.Tensor], error: KernelError) -> None:
        """Raises PyTorch's own error, if it has one, for an index out of range, a division by zero and so on."""
        try:
            self._eager(*inputs)
        except Exception as eager:
            eager.add_note(str(error))
            raise eager from error

    def _on_host(self, inputs: Sequence[torch.Tensor], reason: str) -> Sequence[torch.Tensor]:
        if not self._warned:
            self._warned = True
            user_code.warn(ExactnessWarning(f"a call runs in eager PyTorch: {reason}"))
        with torch.no_grad():
            return list(self._eager(*inputs))


def _excess(x: torch.Tensor, limit: Limit) -> str:
    low, high = of_values(x)
    because = f", beyond which {limit.cause} may leave the device's 32 bits" if limit.cause else ""
    span = f"{limit.interval.low:.0f} .. {limit.interval.high:.0f}"
    values = f"{limit.name} ({x.dtype}) has values in {low:.0f} .. {high:.0f}"
    return f"{values}; the device is exact only in {span}{because}"
