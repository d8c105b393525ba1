"""Python numbers that a graph takes, counts up and returns, but that no tensor depends on.

For example, a cache with a sliding window counts the tokens that it has seen in a Python integer. Dynamo makes it an
input, and the count plus one a result. If it were left in the graph, each count would need its own program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch.fx import Graph, GraphModule, Node

from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.dynamo.types import Argument, Function, Result

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
NUMBERS = (*SYMBOLIC, int, float)

Around = Callable[[Function], Function]


def without_python_numbers(gm: GraphModule, inputs: Sequence[object]) -> tuple[GraphModule, Sequence[object], Around]:
    """A graph of Dynamo without such numbers, its example inputs, and a wrapper for a function that runs this graph.
    The wrapped function takes and returns the numbers again.

    A number stays if it is the size of a tensor, or if an op on tensors takes it. `gm` is not changed.
    """
    if not any(isinstance(value, torch.SymInt) for value in inputs):
        return gm, inputs, lambda run: run
    gm = copied(gm)
    apart = _apart(gm.graph)
    taken = [i for i, node in enumerate(gm.graph.find_nodes(op="placeholder")) if node in apart]
    (results,) = gm.graph.output_node().args
    places = [i for i, node in enumerate(results) if node in apart]
    numbers = _numbers_alone(gm, apart, [results[i] for i in places])
    gm.graph.output_node().args = (tuple(node for node in results if node not in apart),)
    for node in [node for node in reversed(gm.graph.nodes) if node in apart]:
        gm.graph.erase_node(node)
    gm.recompile()
    return gm, [value for i, value in enumerate(inputs) if i not in taken], _around(numbers, taken, places)


def _around(numbers: Function, taken: Sequence[int], places: Sequence[int]) -> Around:
    def around(run: Function) -> Function:
        def call(*given: Argument) -> Result:
            results = list(run(*(value for i, value in enumerate(given) if i not in taken)))
            for place, number in zip(places, numbers(*(given[i] for i in taken)), strict=True):
                results.insert(place, number)
            return tuple(results)

        return call if taken else run

    return around


def _apart(graph: Graph) -> set[Node]:
    """The nodes that are not connected to a tensor: inputs that are numbers, and what is computed only from them."""
    nodes = [node for node in graph.nodes if node.op != "output"]
    sizes = {symbol for node in nodes for symbol in _sizes(node)}
    stay = {node for node in nodes if not _is_number(node) or _symbols(_value(node)) & sizes}
    count = -1
    while count != len(stay):
        count = len(stay)
        stay.update(node for node in nodes if stay.intersection(node.all_input_nodes))
        stay.update(node for user in list(stay) for node in user.all_input_nodes)
    return set(nodes) - stay


def _value(node: Node) -> Any:
    return node.meta.get("example_value")


def _is_number(node: Node) -> bool:
    return isinstance(_value(node), NUMBERS)


def _symbols(value: object) -> set[sympy.Symbol]:
    return set(value.node.expr.free_symbols) if isinstance(value, SYMBOLIC) else set()


def _sizes(node: Node) -> set[sympy.Symbol]:
    """The symbols in the sizes and strides of a tensor."""
    value = _value(node)
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return set()
    return {symbol for number in (*value.shape, *value.stride(), value.storage_offset()) for symbol in _symbols(number)}


def _numbers_alone(gm: GraphModule, apart: set[Node], results: Sequence[Node]) -> Function:
    """A function of the number inputs that gives the number results."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in gm.graph.nodes:
        if node in apart:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple(copies[node] for node in results))
    return GraphModule(gm, graph).forward
