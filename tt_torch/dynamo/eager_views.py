"""Results of a program for several chips that are views in eager PyTorch: of an input, or of a value of which another
result is a view, too.

A program gives each result memory of its own. So these results are made again after each call, by the calls of the
captured graph that make views. A later write to one of two tensors that share memory then reaches the other one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch.fx import Graph, GraphModule, Interpreter, Node

from tt_torch.dynamo.in_place import examples, written_by
from tt_torch.dynamo.types import Argument, Function, Result

Memory: TypeAlias = Callable[[torch.Tensor], int]  # a number for the memory that has the elements of a tensor


class EagerViews:
    """The views among the results of a captured graph. The graph gets more results if the views need them."""

    def __init__(self, gm: GraphModule, memory: Memory) -> None:
        (output,) = gm.graph.find_nodes(op="output")
        self._memory, self._graph = memory, Graph()
        self._made = {node: self._graph.node_copy(node) for node in gm.graph.find_nodes(op="placeholder")}
        self._needed: list[Node] = []  # tensors of the program that the views need
        results = list(output.args[0])
        self._count = len(results)
        owners = {i: self._owner(x) for i, x in enumerate(results) if isinstance(x, Node) and examples(x)}
        users = Counter(owners.values())
        self._views = [i for i, x in owners.items() if results[i] is not x and (x.op == "placeholder" or users[x] > 1)]
        self._graph.output(tuple([self._again(results[i]) for i in self._views]))
        results += [x for x in self._needed if x not in results]
        self._places = [results.index(x) for x in self._needed]
        for i in self._views:
            results[i] = _without_gradients(results[i])
        output.args = (tuple(results),)
        self._gm = GraphModule(gm, self._graph)
        gm.recompile()

    def after(self, run: Function) -> Function:
        """`run`, a program of the captured graph, with these views among its results."""
        if not self._views:
            return run

        def call(*inputs: Argument) -> Result:
            results = run(*inputs)
            views = _InGradModes(self._gm).run(*inputs, *(results[i] for i in self._places))
            made = dict(zip(self._views, views, strict=True))
            return tuple(made.get(i, x) for i, x in enumerate(results[: self._count]))

        return call

    def _source(self, node: Node, memory: int | None = None) -> Node | None:
        """The operand of a call that has this memory, or that of its result: the tensor of which the call makes a view,
        or to which it writes."""
        memory = self._memory(examples(node)[0]) if memory is None else memory
        operands = [*written_by(node), *node.all_input_nodes]
        return next((x for x in operands if memory in map(self._memory, examples(x))), None)

    def _owner(self, node: Node) -> Node:
        """The first tensor with the memory of a value: an input, or the result of a call that makes no view."""
        owner, memory = node, self._memory(examples(node)[0])
        while source := self._source(node, memory):
            node = source
            owner = node if _is_tensor(node) else owner
        return owner

    def _again(self, node: Node) -> Node:
        """The node that makes a value of the captured graph again. Only views and numbers are made again."""
        if node not in self._made:
            self._made[node] = self._copied(node)
        return self._made[node]

    def _copied(self, node: Node) -> Node:
        if not _is_tensor(node):
            return self._graph.node_copy(node, self._again)
        if self._owner(node) is node:
            self._needed.append(node)
            return self._graph.placeholder(node.name)
        written = [x for x in written_by(node) if x is self._source(node)]
        return self._again(written[0]) if written else self._graph.node_copy(node, self._again)


def _without_gradients(view: Node) -> Node:
    """The values of a view. Its gradients are those of the view that is made again."""
    with view.graph.inserting_after(view):
        new = view.graph.call_method("detach", (view,))
    new.meta = dict(view.meta)
    return new


def gets_gradients(gm: GraphModule, memory: Memory) -> bool:
    """Whether a captured graph writes to an input, and its new value has gradients."""
    inputs = [x for node in gm.graph.find_nodes(op="placeholder") for x in examples(node)]
    found = {memory(x) for x in inputs if x.requires_grad and not x.is_leaf}
    written = [x for node in gm.graph.nodes if found for target in written_by(node) for x in examples(target)]
    return not found.isdisjoint(map(memory, written))


class _InGradModes(Interpreter):
    """Makes views that require gradients only where the examples do: a view made in `no_grad` mode does not."""

    def run_node(self, n: Node) -> Result:
        made = examples(n)
        with torch.set_grad_enabled(torch.is_grad_enabled() and (not made or any(x.requires_grad for x in made))):
            return super().run_node(n)


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("example_value"), torch.Tensor)
