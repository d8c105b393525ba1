"""PyTorch's higher-order operators: ops that call graphs.

If the number of calls is known and small, the calls are written out as plain ops for the device. Longer `map` and
`scan`, and those in which the host decides about a `cond`, become a `while_loop`. `driver/decisions.py` compiles each
`while_loop`, and each branch of a `cond`, as device programs. `driver/loops.py` does the same where nothing may run in
eager PyTorch. A program that must decide by itself computes both branches, and selects the results of one. Other
operators run on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.traceback import preserve_node_meta

from tt_torch.dynamo.decompositions.random import SEED
from tt_torch.dynamo.passes.rewriting import fake_inputs
from tt_torch.dynamo.types import Argument, Arguments, Decompositions, Result, Target
from tt_torch.torch_private.ops import HigherOrderOperator, cond, is_random, math_attention, while_loop
from tt_torch.torch_private.tensors import FakeTensorMode, detect_fake_mode
from tt_torch.torch_private.tracing import make_fx
from tt_torch.torch_private.trees import tree_map

aten = torch.ops.aten

# A longer loop would take minutes to compile when it is written out.
MOST_STEPS = 128

Results: TypeAlias = Sequence[Result]
Decides: TypeAlias = Callable[[Sequence[GraphModule]], bool]  # whether the host decides which of these branches runs


def always(branches: Sequence[GraphModule]) -> bool:
    return True


def never(branches: Sequence[GraphModule]) -> bool:
    return False


def write_out(gm: GraphModule, decompositions: Decompositions, host_decides: Decides) -> GraphModule:
    """The graph with the calls of its subgraphs written out, as far as this is possible. `gm` is not changed.

    A `cond` stays if `host_decides` says so of its branches, unless its predicate is a Python number.
    """
    ops = [n for n in gm.graph.nodes if _rule(n.target)]
    if all(n.target is cond and _stays([n.args[0], *_branches(gm, n)], host_decides) for n in ops):
        return gm
    values = fake_inputs(gm)
    with preserve_node_meta(), detect_fake_mode(values) or FakeTensorMode():
        written = make_fx(_WrittenOut(gm, host_decides).run, decomposition_table=decompositions)(*values)
    for new, old in zip(*(g.graph.find_nodes(op="placeholder") for g in (written, gm)), strict=True):
        new.meta = old.meta | {"val": new.meta.get("val", old.meta["val"])}
    for cast in written.graph.find_nodes(op="call_function", target=aten._to_copy.default):
        # vmap turns numbers into tensors, and tracing turns these tensors into numbers again
        if not isinstance(cast.args[0], Node):
            cast.target = aten.scalar_tensor.default
    written.recompile()
    return written


def _rule(target: Target) -> Callable[..., Results] | None:
    return RULES.get(target.name()) if isinstance(target, HigherOrderOperator) else None


def _stays(args: Sequence[Argument], host_decides: Decides) -> bool:
    """Whether the host decides about a `cond` with this predicate, which may be a node, and these branches."""
    return isinstance(args[0], (Tensor, Node)) and host_decides(args[1:3])


def _branches(gm: GraphModule, node: Node) -> list[GraphModule]:
    return [gm.get_submodule(branch.target) for branch in node.args[1:3]]


class _WrittenOut(Interpreter):
    """Runs a graph, and applies the rules to its higher-order operators."""

    def __init__(self, gm: GraphModule, host_decides: Decides = never) -> None:
        super().__init__(gm)
        self.host_decides = host_decides

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: Arguments) -> Result:
        rule = None if target is cond and _stays(args, self.host_decides) else _rule(target)
        decides = never if rule is math_attention else self.host_decides  # it is called for all scores at once
        given = tree_map(lambda a: _Callable(a, decides) if isinstance(a, GraphModule) else a, args) if rule else ()
        results = rule(*given, **kwargs) if rule else NotImplemented
        return super().call_function(target, args, kwargs) if results is NotImplemented else results


class _Callable:
    """A graph as a function. The graphs that it calls are written out, too, unless the host decides about them."""

    def __init__(self, graph: GraphModule, host_decides: Decides = never) -> None:
        self.graph, self.host_decides = graph, host_decides

    def __call__(self, *args: Tensor) -> Results:
        return _WrittenOut(self.graph, self.host_decides).run(*args)

    def has_decisions(self) -> bool:
        """Whether the host decides about a `cond` in a call."""
        graphs = [m for m in self.graph.modules() if isinstance(m, GraphModule)]
        found = [(gm, n) for gm in graphs for n in gm.graph.find_nodes(op="call_function", target=cond)]
        return any(_stays([n.args[0], *_branches(gm, n)], self.host_decides) for gm, n in found)

    def results(self) -> Results:
        """The values of the results in the trace of the graph, which have no elements."""
        found = self.graph.graph.output_node().args[0]
        return [node.meta["val"] for node in found]

    def is_pure(self) -> bool:
        """Whether a call has no effect apart from its results. Drawing random numbers does not count as an effect."""
        ops = _calls(self.graph)
        known = all(_rule(n.target) or not isinstance(n.target, HigherOrderOperator) for n in ops)
        return known and not any(n.is_impure() and not _draws(n.target) for n in ops)


def _calls(gm: GraphModule) -> list[Node]:
    """All ops of a graph. The ops of the graphs that they call are among them."""
    graphs = [m.graph for m in gm.modules() if isinstance(m, GraphModule)]
    return [n for graph in graphs for n in graph.nodes if n.op == "call_function"]


def _draws(op: Target) -> bool:
    return op is SEED or is_random(op)


def _cond(predicate: Tensor | bool, yes: _Callable, no: _Callable, operands: Sequence[Tensor] = ()) -> Results:
    if not isinstance(predicate, Tensor):
        return (yes if predicate else no)(*operands)
    if not (yes.is_pure() and no.is_pure()):
        return NotImplemented
    return tree_map(lambda a, b: torch.where(predicate.reshape(()), a, b), list(yes(*operands)), list(no(*operands)))


def _map(function: _Callable, xs: Sequence[Tensor], others: Sequence[Tensor]) -> Results:
    return _scan(function, (), xs, others)


def _scan(function: _Callable, carried: Sequence[Tensor], xs: Sequence[Tensor], others: Sequence[Tensor]) -> Results:
    """`function` takes the carried tensors, a row of each of `xs`, and the others. It returns the carried tensors and a
    row of each result."""
    if not len(xs[0]):
        return NotImplemented
    if len(xs[0]) > MOST_STEPS or function.has_decisions():
        return _as_loop(function, carried, xs, others)
    rows: list[Results] = []
    for i in range(len(xs[0])):
        results = function(*carried, *(x[i] for x in xs), *others)
        carried, made = results[: len(carried)], results[len(carried) :]
        rows.append(made)
    return [*carried, *(torch.stack(column) for column in zip(*rows, strict=True))]


def _as_loop(function: _Callable, carried: Sequence[Tensor], xs: Sequence[Tensor], others: Sequence[Tensor]) -> Results:
    """A scan as a `while_loop`, which also carries the number of the step, and the rows of all steps."""
    steps, count = len(xs[0]), len(carried)
    made = function.results()[count:]
    rows = [torch.zeros(steps, *x.shape, dtype=x.dtype, device=x.device) for x in made]

    def body(i: Tensor, *values: Tensor) -> Results:
        given, others = values[: count + len(made)], values[count + len(made) :]
        row = [x.index_select(0, i.reshape(1)).squeeze(0) for x in others[: len(xs)]]
        results = function(*given[:count], *row, *others[len(xs) :])
        here = [(torch.arange(steps, device=x.device) == i).reshape(-1, *[1] * (x.dim() - 1)) for x in given[count:]]
        new = [torch.where(at, y, x) for at, y, x in zip(here, results[count:], given[count:], strict=True)]
        return [i + 1, *(x.clone() for x in results[:count]), *new]

    start = [torch.zeros((), dtype=torch.int64, device=xs[0].device), *carried, *rows]
    results: Results = while_loop(lambda i, *values: i < steps, body, tuple(start), (*xs, *others))
    return results[1:]


def _invoke(function: _Callable, identifier: str, *operands: Tensor) -> Results:
    return function(*operands)


RULES: dict[str, Callable[..., Results]] = {
    "cond": _cond,
    "map_impl": _map,
    "scan": _scan,
    "invoke_subgraph": _invoke,
    "flex_attention": math_attention,
}
