"""Interval analysis of a graph: finds the nodes that the device computes exactly, and for which inputs."""

from __future__ import annotations

import math
import operator
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo import facts
from tt_torch.dynamo.exactness.interval import ANYTHING, Interval, held, of_dtype, of_values
from tt_torch.dynamo.exactness.limits import Limit
from tt_torch.dynamo.exactness.rules import RULES, Of
from tt_torch.dynamo.facts import Fact
from tt_torch.dynamo.passes.constant_fold import evaluate
from tt_torch.dynamo.passes.rewriting import arguments, user_line, value
from tt_torch.dynamo.types import Argument, Result
from tt_torch.torch_private.ops import OpOverload, schema
from tt_torch.torch_private.tensors import unset_fake_temporarily

aten = torch.ops.aten
DEVICE = Interval(-(2**31), 2**31 - 1)
WIDE = (torch.int64, torch.uint32, torch.uint64)  # the device computes them in 32 bits
# a bound beyond 32 bits has the same effect as the largest one
SATURATING = (aten.clamp, aten.clamp_min, aten.clamp_max)
LEVELS = [2**n for n in range(31, 2, -1)]
# Floats are not limited to less, because a call beyond a limit runs in eager PyTorch as a whole.
LEAST_OF_CASTS = 2**24
Raw = Mapping[Node, tuple[Interval, ...]]  # for each result of a node


class Analysis:
    """The intervals of a graph's nodes on which integers depend."""

    def __init__(self, gm: GraphModule) -> None:
        self.nodes = integer_cone(gm)
        known = {n: v for n, v in evaluate(gm, fold=True).items() if isinstance(v, torch.Tensor)}
        with unset_fake_temporarily():
            self.given = {n: of_values(known[n]) for n in self.nodes if n in known}
        self.inputs = [n for n in self.nodes if n.op == "placeholder" and value(n).dtype in (*WIDE, torch.int32)]
        raw = self.raw(dict.fromkeys(self.inputs, LEVELS[0]))
        casts = (n for n in self.nodes if _is_cast(n) and _is_wide(n) and not _is_integer(n.args[0]))
        self.unknown_casts = [n for n in casts if raw[n] == (ANYTHING,)]

    def raw(self, limits: Mapping[Node, int]) -> Raw:
        """The interval of each result, if no absolute value in an input or cast is above its limit. Values do not wrap
        yet."""
        return intervals(self.nodes, self.given | {n: _limited(n, limit) for n, limit in limits.items()})

    def inexact(self, raw: Raw) -> dict[Node, str]:
        """The nodes that the device would not compute exactly, with the reason."""
        reasons = {node: _reason(node, raw) for node in self.nodes if _computes(node)}
        return {node: reason for node, reason in reasons.items() if reason}

    def limits(self) -> dict[Node, int]:
        """Returns the limits of inputs and of casts of unknown floats. Each limit is as large as possible: it makes no
        more nodes inexact than the smallest limits do."""
        limited = {**dict.fromkeys(self.inputs, LEVELS[-1]), **dict.fromkeys(self.unknown_casts, LEAST_OF_CASTS)}
        if not limited:
            return {}
        least = self.inexact(self.raw(limited)).keys()

        def fits(limits: Mapping[Node, int]) -> bool:
            return self.inexact(self.raw(limits)).keys() <= least

        def highest(limited: Callable[[int], dict[Node, int]]) -> int:
            return LEVELS[min(bisect_left(LEVELS, True, key=lambda n: fits(limited(n))), len(LEVELS) - 1)]

        def at(level: int, nodes: Iterable[Node] = limited) -> dict[Node, int]:
            return {n: max(level, limited[n]) for n in nodes}

        limits = at(highest(at))
        for node in limited if LEVELS[0] not in limits.values() else []:
            highest_of_node = highest(lambda level, node=node: limits | at(level, [node]))  # type: ignore[misc]
            limits.update(at(highest_of_node, [node]))
        return limits

    def explained(self, limits: Mapping[Node, int]) -> dict[Node, Limit]:
        """The limits of inputs that are narrower than the input's dtype."""
        if not limits:
            return {}
        found, now = {}, self.inexact(self.raw(limits)).keys()
        for node, level in ((n, limits[n]) for n in self.inputs):
            interval = _limited(node, level)
            if interval == of_dtype(value(node).dtype):
                continue
            higher = LEVELS[max(0, LEVELS.index(level) - 1)]
            beyond = [n for n in self.inexact(self.raw(dict(limits) | {node: higher})) if n not in now]
            name = node.meta.get("source", node.name)
            found[node] = Limit(name, interval, f"{beyond[0].target} at {user_line(beyond[0])}" if beyond else "")
        return found


def _limited(node: Node, level: int) -> Interval:
    """The values of an input or cast that are not larger than `level`: -8 .. 8 for int64, 0 .. 8 for uint8."""
    low, high = of_dtype(value(node).dtype)
    return Interval(max(low, -level, DEVICE.low), min(high, level, DEVICE.high))


def _computes(node: Node) -> bool:
    return node.op == "call_function" and node.target is not operator.getitem


def _is_integer(node: object) -> bool:
    return isinstance(node, Node) and _has_integers(value(node))


def _has_integers(v: object) -> bool:
    return isinstance(v, torch.Tensor) and not (v.dtype is torch.bool or v.is_floating_point() or v.is_complex())


def _is_wide(node: Node) -> bool:
    return isinstance(node, Node) and isinstance(value(node), torch.Tensor) and value(node).dtype in WIDE


def integer_cone(gm: GraphModule) -> list[Node]:
    """The integer nodes, and floats that are cast to integers if their values are bounded."""
    needed: set[Node] = set()
    for node in reversed(gm.graph.nodes):
        if node.op == "output" or "val" not in node.meta:
            continue
        results = _results(node)
        if any(map(_has_integers, results)):
            needed.add(node)
        read_floats = _is_cast(node) or not _is_integer(node)
        if node in needed and read_floats and RULES.get(node.target):
            needed.update(n for n in node.all_input_nodes if isinstance(value(n), torch.Tensor))
        if any(_is_integer(n) for n in node.all_input_nodes):
            needed.add(node)
    return [n for n in gm.graph.nodes if n in needed]


def _is_cast(node: Node) -> bool:
    return Fact.CASTS in facts.of(node.target)


def _reason(node: Node, raw: Raw) -> str:
    """The reason why the device would not compute a node exactly; "" if it would."""
    for operand in node.all_input_nodes:
        if _is_wide(operand) and operand in raw and not held(raw[operand][0], value(operand).dtype).within(DEVICE):
            return "it reads integers of more than 32 bits"
    for result, interval in zip(_results(node), raw[node], strict=True):
        if isinstance(result, torch.Tensor) and result.dtype in WIDE and not interval.within(DEVICE):
            return "its integers may need more than 32 bits"
    if any(_is_integer(n) for n in node.all_input_nodes) and _large_number(node):
        return "it computes with a number of more than 32 bits"
    return ""


def _large_number(node: Node) -> bool:
    """Whether a number in the arithmetic, which is not a size, has more than 32 bits."""
    if not isinstance(node.target, OpOverload) or node.target.overloadpacket in SATURATING:
        return False
    given = zip(schema(node.target).arguments, node.args, strict=False)
    numbers = [v for s, v in given if facts.kind(s.type) is torch.NumberType]
    return any(type(v) is int and not Interval(v, v).within(DEVICE) for v in numbers)


def intervals(nodes: Sequence[Node], given: Mapping[Node, Interval]) -> Raw:
    """The interval of each result of `nodes`, before it is wrapped to its dtype.

    `nodes` are in the order of the graph, and include all operands. `given` has the intervals of inputs and constants.
    """
    raw: dict[Node, tuple[Interval, ...]] = {}

    def of(x: Argument) -> Interval:
        if not isinstance(x, Node):
            return Interval(x, x) if isinstance(x, (int, float)) and math.isfinite(x) else ANYTHING
        if x not in raw:
            return of_dtype(value(x).dtype)
        return held(raw[x][0], value(x).dtype)

    for node in nodes:
        raw[node] = _of_node(node, given, raw, of)
    return raw


def _of_node(node: Node, given: Mapping[Node, Interval], raw: Raw, of: Of) -> tuple[Interval, ...]:
    """The interval of each result of a node: the given interval, the result of its rule, or all values of the dtype."""
    if node in given:
        return (given[node],)
    if node.target is operator.getitem and node.args[0] in raw:
        return (raw[node.args[0]][node.args[1]],)
    own = tuple(of_dtype(v.dtype) if isinstance(v, torch.Tensor) else ANYTHING for v in _results(node))
    rule = RULES.get(node.target)
    if node.op != "call_function" or rule is None:
        return own
    try:
        found = rule(node, arguments(node), of)
        if not isinstance(found, Interval):
            return found
        return (_rounded(found) if own[0] == ANYTHING else found,) * len(own)
    except OverflowError:  # beyond the range of Python's floats
        return (ANYTHING,) * len(own)


def _results(node: Node) -> Sequence[Result]:
    found = node.meta["val"]
    return found if isinstance(found, (list, tuple)) else [found]


def _rounded(x: Interval) -> Interval:
    """The interval, widened by the rounding of bf16, which is the least precise float."""
    return Interval(x.low - abs(x.low) / 128, x.high + abs(x.high) / 128) if math.isfinite(x.high - x.low) else ANYTHING
