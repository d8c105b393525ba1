"""What a program takes and returns are tensors; a graph also takes sizes and returns None and numbers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import GraphModule, Node


@dataclass
class Interface:
    """How calls of a graph become calls of its program."""

    inputs: list[int]  # positions of the tensors among the graph's inputs
    outputs: list[Any]  # what the graph returns that is no tensor, Ellipsis in the place of each tensor

    def arguments(self, inputs: Sequence[Any]) -> list[torch.Tensor]:
        return [inputs[i] for i in self.inputs]

    def results(self, tensors: Sequence[torch.Tensor]) -> list[Any]:
        remaining = iter(tensors)
        return [next(remaining) if value is ... else value for value in self.outputs]


def tensors_only(gm: GraphModule) -> tuple[GraphModule, Interface]:
    """The graph with nothing but tensors at its border, and how to call it. `gm` itself is not changed.

    Sizes are known by now: the graph is traced for given ones, so that their placeholders have no readers.
    """
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    (output,) = (n for n in gm.graph.nodes if n.op == "output")
    given = [i for i, n in enumerate(placeholders) if _is_tensor(n)]
    returned = [... if _is_tensor(v) else v for v in output.args[0]]
    if len(given) < len(placeholders) or any(v is not ... for v in returned):
        gm = copy.copy(gm)
        gm.graph = copy.deepcopy(gm.graph)
        placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
        (output,) = (n for n in gm.graph.nodes if n.op == "output")
        output.args = (tuple(v for v in output.args[0] if _is_tensor(v)),)
        gm.graph.eliminate_dead_code()
        for i in set(range(len(placeholders))) - set(given):
            _replace_by_value(gm.graph, placeholders[i])
    return gm, Interface(given, [_constant(v) for v in returned])


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Node) and isinstance(value.meta.get("val"), torch.Tensor)


def _constant(value: Any) -> Any:
    return value.meta["val"] if isinstance(value, Node) else value


def _replace_by_value(graph: torch.fx.Graph, placeholder: Node) -> None:
    for user in list(placeholder.users):
        user.args = torch.fx.node.map_arg(user.args, lambda n: n.meta["val"] if n is placeholder else n)
        user.kwargs = torch.fx.node.map_arg(user.kwargs, lambda n: n.meta["val"] if n is placeholder else n)
    graph.erase_node(placeholder)
