"""Pure functions on graphs with host ops: what stays on the device, what is read twice, which inputs are numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

from tt_torch.driver.crossing import with_views
from tt_torch.driver.partition import _second_readings
from tt_torch.driver.sizes import numbers_read


def is_view(node: Node) -> bool:
    return node.op == "call_method" and node.target == "t"


def test_views_of_results_stay_where_a_subgraph_reads_them() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    first = graph.call_module("first", (x,))
    result = graph.call_function(operator.getitem, (first, 0))
    view = graph.call_method("t", (result,))
    of_view = graph.call_method("t", (view,))
    of_host = graph.call_method("t", (x,))
    unread = graph.call_method("t", (result,))
    second = graph.call_module("second", (of_view, of_host))
    copied = graph.call_method("clone", (result,))
    third = graph.call_module("third", (copied,))
    graph.output((second, third, graph.call_method("relu", (unread,))))
    calls = [first, second, third]
    assert with_views(graph, {result}, calls, is_view) == {result, view, of_view}
    assert with_views(graph, set(), calls, is_view) == set()


def reading(*chosen: str, proposed: tuple[str, ...]) -> list[str]:
    """The views of a subgraph that consists of the `chosen` ops."""
    graph = Graph()
    x, y = graph.placeholder("x"), graph.placeholder("y")
    v = graph.call_method("t", (x,))
    w = graph.call_method("t", (v,))
    u = graph.call_method("t", (y,))
    nodes = {"x": x, "y": y, "v": v, "w": w, "u": u}
    nodes["both"] = graph.call_function(torch.add, (x, w))
    nodes["view"] = graph.call_function(torch.neg, (w,))
    nodes["plain"] = graph.call_function(torch.add, (x, 1))
    nodes["of_u"] = graph.call_function(torch.add, (u, x))
    graph.output((v, u, w, *(nodes[name] for name in ("both", "view", "plain", "of_u"))))
    found = _second_readings({nodes[name]: None for name in chosen}, {nodes[name] for name in proposed})
    return [name for node in found for name in nodes if nodes[name] is node]


@pytest.mark.parametrize(
    ("chosen", "proposed", "expected"),
    [
        (["both"], ("v", "w"), ["v", "w"]),  # x crosses, so its views are made on the device
        (["both"], ("v",), []),  # w stays on the host, so no op of the subgraph reads v
        (["both"], ("w",), []),
        (["view"], ("v", "w"), []),  # nothing reads x itself
        (["view", "plain"], ("v", "w"), ["v", "w"]),
        (["plain"], ("v", "w"), []),  # nothing reads the views
        (["of_u"], ("u",), []),
        (["of_u", "plain"], ("u", "v", "w"), []),
        (["both", "v"], ("v", "w"), ["w"]),  # v is a part of the subgraph
        ([], ("v", "w"), []),
    ],
)
def test_views_of_what_a_subgraph_reads_anyway(
    chosen: list[str], proposed: tuple[str, ...], expected: list[str]
) -> None:
    assert reading(*chosen, proposed=proposed) == expected


def used(function: Callable[[Node], Any] | None) -> GraphModule:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output(function(x) if function else None)
    return GraphModule({}, graph)


def add(x: Node) -> Node:
    return x.graph.call_function(torch.add, (x, 1))


def item(x: Node) -> tuple[Node, Node]:
    return add(x), x.graph.call_method("item", (x,))


@pytest.mark.parametrize(
    ("value", "function", "is_number"),
    [
        (torch.tensor(3), add, True),
        (torch.tensor(True), add, True),
        (torch.tensor(3), item, True),
        (torch.tensor(3), None, False),  # nobody reads it
        (torch.tensor(0.5), add, False),
        (torch.tensor(0.5), item, True),
        (torch.tensor(0.5j), item, False),
        (torch.tensor([3]), add, False),
        (torch.tensor([0.5]), item, False),
        (3, add, False),
    ],
)
def test_scalars_whose_values_a_graph_may_read(value: object, function: Any, is_number: bool) -> None:
    assert numbers_read(used(function), [value]) == ([0] if is_number else [])


def test_positions_ofnumbers_read() -> None:
    graph = Graph()
    graph.output([add(graph.placeholder(name)) for name in "xyz"])
    given = [torch.ones(2), torch.tensor(3), torch.tensor(4)]
    assert numbers_read(GraphModule({}, graph), given) == [1, 2]
