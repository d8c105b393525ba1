"""Tensors that cross between host and device in a partitioned graph: each is moved at most once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

import torch
from torch.fx import GraphModule, Node

from tt_torch.driver.executor import eager_device


class Piece(Protocol):
    """What runs a device subgraph, a loop, or branches: `kinds` are the roles of its inputs."""

    @property
    def kinds(self) -> Sequence[str]: ...

    def return_on_device(self, position: int) -> None:
        """Lets a result stay on the device."""


def move_once(outer: GraphModule, pieces: Mapping[str, Piece], is_view: Callable[[Node], bool]) -> None:
    """Rewrites the calls of a partitioned graph. Its device subgraphs, loops and branches are submodules, which
    `pieces` run.

    A result that another device subgraph reads stays on the device, also if it is read through views; `is_view` tells
    which nodes are views. Host ops read one copy of it. A host tensor that several device subgraphs read is copied
    once.
    """
    calls = [n for n in outer.graph.nodes if n.op == "call_module"]
    kept = {n for call in calls for n in call.users if _read_by(n, calls, is_view)}
    for result in kept:
        pieces[result.args[0].target].return_on_device(result.args[1])
    kept |= _copy_to_host(outer.graph, kept, calls, is_view)
    kinds = {call: pieces[call.target].kinds for call in calls}
    resident = {n for call in calls for n, kind in zip(call.args, kinds[call], strict=False) if kind != "input"}
    _copy_to_device(outer.graph, kept, calls, resident)
    outer.recompile()


def _read_by(node: Node, calls: Collection[Node], is_view: Callable[[Node], bool]) -> bool:
    return any(user in calls or (is_view(user) and _read_by(user, calls, is_view)) for user in node.users)


def with_views(
    graph: torch.fx.Graph, results: Collection[Node], calls: Collection[Node], is_view: Callable[[Node], bool]
) -> set[Node]:
    """Results of device subgraphs, and the views of them that device subgraphs read. `calls` call subgraphs."""
    there = set(results)
    for node in graph.nodes:
        if is_view(node) and there & set(node.all_input_nodes) and _read_by(node, calls, is_view):
            there.add(node)
    return there


def _copy_to_host(
    graph: torch.fx.Graph, kept: set[Node], calls: list[Node], is_view: Callable[[Node], bool]
) -> set[Node]:
    """Lets host ops read a copy of each kept result. Returns the views of kept results that device subgraphs read."""
    there = with_views(graph, kept, calls, is_view)
    for node in [n for n in graph.nodes if n in there]:
        readers = [user for user in node.users if user not in calls and user not in there]
        if readers:
            with graph.inserting_after(node):
                copied = graph.call_method("cpu", (node,))
            for reader in readers:
                reader.replace_input_with(node, copied)
    return there


def _copy_to_device(graph: torch.fx.Graph, kept: set[Node], calls: list[Node], resident: set[Node]) -> None:
    for node in list(graph.nodes):
        readers = [user for user in node.users if user in calls]
        if len(readers) < 2 or node in kept or node in resident:
            continue
        with graph.inserting_after(node):
            moved = graph.call_method("to", (node, eager_device()))
        for reader in readers:
            reader.replace_input_with(node, moved)
