"""Finds the conditions under which a graph is exact on the device, and marks the nodes that are never exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import torch
from torch.fx import Graph, GraphModule, Node

from tt_torch import user_code
from tt_torch.dynamo import facts
from tt_torch.dynamo.exactness.analysis import LEVELS, Analysis, Raw
from tt_torch.dynamo.exactness.interval import Interval
from tt_torch.dynamo.exactness.limits import Plan
from tt_torch.dynamo.facts import Fact
from tt_torch.dynamo.passes.rewriting import arguments, call, copied, user_line, value
from tt_torch.dynamo.types import Arguments

aten, prims = torch.ops.aten, torch.ops.prims


class Float64Warning(UserWarning):
    """A program computes in float64, but the device computes in float32."""


def make_exact(gm: GraphModule, strict: bool, flag: bool = True) -> Plan:
    """Changes a functional graph so that its integers are exact under the conditions of the plan, which is returned.

    Nodes that the device cannot compute exactly are marked. With `strict`, nodes of float64 and float16 are marked too.
    Some values are known only on the device: floats that become integers, and indices. If these may be out of range, an
    extra output of the graph tells it. Without `flag`, an extra graph tells it instead.
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
    flagged = _add_flag(gm, {n: limits[n] for n in analysis.unknown_casts}, raw)
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    plan = Plan({placeholders.index(n): limit for n, limit in analysis.explained(limits).items()}, flagged)
    if flagged and not flag:
        plan.flagged, plan.check = False, copied(gm)
        _keep_outputs(plan.check.graph, slice(-1, None))
        plan.checked = _drop_unused_inputs(plan.check.graph)
        _keep_outputs(gm.graph, slice(-1))
    return plan


def check_ranges(gm: GraphModule, flags: Sequence[Node]) -> bool:
    """Adds an output that is true if all `flags` are, if floats fit into the integers that they become, and if indices
    are in range. Returns whether there is such an output. Others check that integers stay within 32 bits."""
    analysis, most = Analysis(gm), LEVELS[0]
    limits = dict.fromkeys([*analysis.inputs, *analysis.unknown_casts], most)
    return _add_flag(gm, dict.fromkeys(analysis.unknown_casts, most), analysis.raw(limits), flags)


def _keep_outputs(graph: Graph, kept: slice) -> None:
    """Makes the graph return only some of its outputs, and removes ops that these outputs do not need."""
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
        return isinstance(value(node), torch.Tensor) and value(node).dtype is dtype

    def reads(node: Node) -> bool:
        return any(has(n) and value(n).dim() for n in node.all_input_nodes)

    return [n for n in found if n.op == "call_function" and (has(n) or reads(n))]


# Arithmetic on each element. It raises no error, so an element that is not selected afterwards has no effect.
_ARITHMETIC = (aten.add, aten.sub, aten.rsub, aten.mul, aten.neg, aten.minimum, aten.maximum, aten.clamp, aten.abs)


def _unselected(node: Node) -> Node | None:
    """The condition under which nothing reads an element of the node, if there is one.

    It is the condition of a `where` that selects the node elsewhere, perhaps after some arithmetic. T5 computes the
    logarithm of each distance, also of 0, and selects it for large distances only.
    """
    while len(readers := [u for u in node.users if not _reads_shape(u, node)]) == 1:
        (reader,) = readers
        if reader.target is aten.where.self and reader.args[1] is not node and value(reader).shape == value(node).shape:
            return reader.args[0] if reader.args[2] is node else None
        if facts.packet(reader.target) not in _ARITHMETIC or value(reader).shape != value(node).shape:
            return None
        node = reader
    return None


def _reads_shape(user: Node, node: Node) -> bool:
    """Whether a user of a node, such as `full_like`, reads only its shape."""
    return Fact.FILLS in facts.of(user.target) and node not in user.args[1:]


def _checks(gm: GraphModule, casts: Mapping[Node, int], raw: Raw) -> list[Node]:
    """Boolean scalars that must be true: floats that become integers are below their limits, and indices are in range.

    Indices are only checked if there are several: the device combines them to one number, so an index that is out of
    range could hit another row. The index of a `scatter_reduce` is checked, too: the device compares it with all
    positions, so it would have no effect. Other kernels find no element, and raise an error.
    """
    checks: list[Node | None] = []
    for node, limit in casts.items():
        size = call(node, aten.abs.default, node.args[0])
        fits = call(size, aten.lt.Scalar, size, float(limit))
        unread = _unselected(node)
        checks.append(fits if unread is None else call(fits, aten.logical_or.default, fits, unread))
    for node in [n for n in gm.graph.nodes if facts.of(n.target) & (Fact.PICKS | Fact.WRITES)]:
        given = _looked_up(arguments(node))
        checks += [_in_range(i, -size, size, raw) for i, size in given if len(given) > 1]
    for node in gm.graph.find_nodes(op="call_function", target=aten.scatter_reduce.two):
        x, dim, index = node.args[:3]
        checks.append(_in_range(index, 0, value(x).shape[dim], raw))
    return [call(check, aten.all.default, check) for check in checks if check is not None]


def _in_range(index: Node, low: int, end: int, raw: Raw) -> Node | None:
    """Whether the indices are at least `low` and below `end`, as a node; None if they are known to be."""
    if index not in raw or raw[index][0].within(Interval(low, end - 1)):
        return None
    fits = (call(index, aten.ge.Scalar, index, low), call(index, aten.lt.Scalar, index, end))
    return call(fits[0], aten.logical_and.default, *fits)


def _looked_up(a: Arguments) -> list[tuple[Node, int]]:
    """The indices of an op with one index per dimension, and the sizes of these dimensions."""
    if not isinstance(a.get("indices"), (list, tuple)):
        return []
    return [(i, size) for i, size in zip(a["indices"], value(a["self"]).shape, strict=False) if i is not None]


def _add_flag(gm: GraphModule, casts: Mapping[Node, int], raw: Raw, flags: Sequence[Node] = ()) -> bool:
    """Adds an output that is true if all checks and flags are true. Returns whether there are any."""
    (output,) = (n for n in gm.graph.nodes if n.op == "output")
    with gm.graph.inserting_before(output):
        checks = [*_checks(gm, casts, raw), *flags]
        if not checks:
            return False
        flag = reduce(lambda a, b: call(a, aten.logical_and.default, a, b), checks)
    output.args = ((*output.args[0], flag),)
    return True
