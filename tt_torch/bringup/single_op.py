"""One op of a graph as something that can be written to a file and compiled in another process."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from tt_torch.dynamo.types import Argument, Arguments, Result
from tt_torch.torch_private.ops import OpOverload
from tt_torch.torch_private.tensors import FakeTensorMode
from tt_torch.torch_private.trees import tree_map_only


@dataclass(frozen=True)
class Input:
    """Stands for a tensor among an op's arguments."""

    position: int


@dataclass(frozen=True)
class SingleOp:
    """An ATen op with its arguments: tensors are replaced by Inputs, whose values come separately."""

    name: str  # of the FX node
    target: str  # "aten.add.Tensor"
    args: tuple[Argument, ...]
    kwargs: Arguments
    roles: list[str]  # of the inputs: input, parameter or constant
    results: list[int] | None  # which of several results are read; None for an op with one result
    stack_trace: str | None = None

    def graph(self, inputs: Sequence[torch.Tensor]) -> GraphModule:
        """The op as a graph module on inputs of these shapes and dtypes, with `val` metadata."""
        graph, mode = Graph(), FakeTensorMode()
        fakes = [mode.from_tensor(value) for value in inputs]
        placeholders = [graph.placeholder(f"x{i}") for i in range(len(inputs))]
        for placeholder, fake in zip(placeholders, fakes, strict=True):
            placeholder.meta["val"] = fake
        args, kwargs = self._fill(placeholders)
        node = graph.call_function(resolve(self.target), args, kwargs)
        node.meta = {"val": self.call(fakes, mode), "stack_trace": self.stack_trace}
        graph.output(tuple(self._outputs(graph, node)))
        return GraphModule(torch.nn.Module(), graph)

    def call(self, inputs: Sequence[torch.Tensor], mode: FakeTensorMode | None = None) -> Result:
        args, kwargs = self._fill(inputs)
        if mode is None:
            return resolve(self.target)(*args, **kwargs)
        with mode:
            return resolve(self.target)(*args, **kwargs)

    def outputs(self, value: Result) -> list[torch.Tensor]:
        """The results that the graph reads, taken from the return value of the op."""
        return [value] if self.results is None else [value[i] for i in self.results]

    def _fill(self, values: Sequence[Argument]) -> tuple[tuple[Argument, ...], Arguments]:
        return tree_map_only(Input, lambda i: values[i.position], (self.args, self.kwargs))

    def _outputs(self, graph: Graph, node: Node) -> list[Node]:
        if self.results is None:
            return [node]
        found = []
        for i in self.results:
            found.append(graph.call_function(operator.getitem, (node, i)))
            found[-1].meta["val"] = node.meta["val"][i]
        return found


def single_op(node: Node, roles: dict[Node, str]) -> SingleOp:
    """The op of an ATen node. `roles` has the role of each placeholder of the graph."""
    inputs = {n: Input(i) for i, n in enumerate(node.all_input_nodes)}
    args, kwargs = map_arg((node.args, node.kwargs), inputs.__getitem__)
    several = isinstance(node.meta["val"], (list, tuple))
    read = {user.args[1] for user in node.users if user.target is operator.getitem and user.users}
    return SingleOp(
        name=node.name,
        target=str(node.target),
        args=tuple(args),
        kwargs=dict(kwargs),
        roles=[roles.get(n, "input") for n in inputs],
        results=sorted(read) if several else None,
        stack_trace=node.meta.get("stack_trace"),
    )


def resolve(target: str) -> OpOverload:
    """The op of a name such as "aten.add.Tensor"."""
    namespace, name, overload = target.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), name), overload)
