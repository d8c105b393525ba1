"""Loops and branches of complex tensors: the graphs that they call take and return both parts of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import NotImplementedType
from typing import TypeAlias

from torch import Tensor
from torch.fx import GraphModule

from tt_torch.dynamo.complex_pairs.pairs import RULES, Pair, has_complex, run_in_pairs
from tt_torch.torch_private.ops import cond, while_loop

Value: TypeAlias = Pair | Tensor
Values: TypeAlias = Sequence[Value]


@RULES(cond)
def _branch(
    predicate: Tensor, yes: GraphModule, no: GraphModule, operands: Values = ()
) -> list[Value] | NotImplementedType:
    if not _needs_pairs(operands, yes, no):
        return NotImplemented
    kinds: list[bool] = []
    graphs = [_on_parts(graph, _kinds(operands), kinds) for graph in (yes, no)]
    return _joined(cond(predicate, *graphs, _apart(operands)), kinds)


@RULES(while_loop)
def _loop(
    condition: GraphModule, body: GraphModule, carried: Values, others: Values
) -> list[Value] | NotImplementedType:
    if not _needs_pairs([*carried, *others], condition, body):
        return NotImplemented
    graphs = [_on_parts(graph, _kinds([*carried, *others]), []) for graph in (condition, body)]
    return _joined(while_loop(lambda *v: graphs[0](*v)[0], graphs[1], _apart(carried), _apart(others)), _kinds(carried))


def _needs_pairs(operands: Values, *graphs: GraphModule) -> bool:
    """Whether complex numbers are among the operands, or in the graphs. Python numbers cannot become parts."""
    known = all(isinstance(x, (Pair, Tensor)) for x in operands)
    return known and (any(_kinds(operands)) or any(map(has_complex, graphs)))


def _kinds(values: Iterable[Value]) -> list[bool]:
    """Which of the values are complex."""
    return [isinstance(x, Pair) for x in values]


def _apart(values: Values) -> tuple[Tensor, ...]:
    """The values, with two parts in the place of each complex one."""
    return tuple(part for x in values for part in ([x.re, x.im] if isinstance(x, Pair) else [x]))


def _joined(parts: Iterable[Tensor], kinds: Sequence[bool]) -> list[Value]:
    """The reverse of `_apart`."""
    given = iter(parts)
    return [Pair(next(given), next(given)) if kind else next(given) for kind in kinds]


def _on_parts(graph: GraphModule, kinds: Sequence[bool], made: list[bool]) -> Callable[..., tuple[Tensor, ...]]:
    """The graph as a function of real tensors. It writes into `made` which results of the graph are complex."""

    def run(*parts: Tensor) -> tuple[Tensor, ...]:
        results = run_in_pairs(graph, _joined(parts, kinds))
        made[:] = _kinds(results)
        return tuple(x.clone() for x in _apart(results))  # PyTorch wants results that are no inputs

    return run
