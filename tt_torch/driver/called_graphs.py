"""The graphs that `while_loop` and `cond` call, in the form in which one module can hold them.

All ops that call graphs are written out in them, except those about which the host decides. They draw no seeds of
random numbers. The graph around them draws the seeds, and they take them as operands. A branch that does not run leaves
its seeds unread. A loop carries its seeds, and its body makes the seeds of the next step.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import GraphModule, Node

from tt_torch.config import CompilerConfig
from tt_torch.driver.decisions import FORMS, drop_unread, returns_tensors, write_numbers
from tt_torch.driver.observer import Observer
from tt_torch.dynamo.control_flow import Decides, always, never, write_out
from tt_torch.dynamo.decompositions import DECOMPOSITIONS
from tt_torch.dynamo.decompositions.random import NEXT, SEED
from tt_torch.dynamo.interface import is_tensor
from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.dynamo.types import Argument
from tt_torch.torch_private.ops import while_loop

aten = torch.ops.aten


def decides(branches: Sequence[GraphModule]) -> bool:
    """Whether the host decides which of the branches runs. If not, both are computed in one program."""
    return all(map(returns_tensors, branches))


def is_plain(config: CompilerConfig, observer: Observer) -> bool:
    """Whether the graphs that `while_loop` and `cond` call can be programs of their own."""
    return not observer.make_executor and config.mesh_shape == (1, 1) and not config.device_map


def host_decides(config: CompilerConfig, observer: Observer) -> Decides:
    """Between which branches of `cond` the host chooses. They are several programs then."""
    if observer.take_graph or not is_plain(config, observer):
        return never
    return decides if config.fallback == "error" else always


def is_one_module(config: CompilerConfig, observer: Observer) -> bool:
    """Whether a graph becomes one module together with the graphs that it calls, because nothing may run in eager
    PyTorch."""
    return config.fallback == "error" and not observer.take_graph and is_plain(config, observer)


def prepare(gm: GraphModule) -> None:
    """Brings the graphs that a graph calls into this form.

    An op that changes Python numbers stays as it is. `loops.py` refuses it by its name.
    """
    for node in [n for n in gm.graph.nodes if n.target in FORMS]:
        form = FORMS[node.target](node)
        if all(map(is_tensor, form.changing)):
            graphs = [_prepared(gm.get_submodule(each.target), form.operands) for each in form.graphs]
            _call(gm, node, graphs, _seeds_to_operands(node, graphs))
    drop_unread(gm.graph)
    gm.recompile()


def _prepared(graph: GraphModule, operands: Sequence[Argument]) -> GraphModule:
    graph = copied(graph)
    write_numbers(graph.graph, operands)
    graph = write_out(graph, DECOMPOSITIONS, decides)
    prepare(graph)
    return graph


def _seeds_to_operands(node: Node, graphs: Sequence[GraphModule]) -> list[Node]:
    """Draws the seeds of the graphs before the node that calls them. Each graph takes all of them as inputs, also those
    of the other graph: behind the values that a loop carries, or behind all operands of a branch."""
    owners = [(graph, seed) for graph in graphs for seed in graph.graph.find_nodes(op="call_function", target=SEED)]
    places = [_place(node, graph) for graph in graphs]
    drawn = []
    for owner, seed in owners:
        with node.graph.inserting_before(node):
            drawn.append(_noted(node.graph.call_function(SEED, (), dict(seed.kwargs)), seed))
        for graph, place in zip(graphs, places, strict=True):
            with graph.graph.inserting_before(place):
                given = _noted(graph.graph.placeholder(f"seed_{len(drawn)}"), seed)
            if graph is owner:
                seed.replace_all_uses_with(given)
                graph.graph.erase_node(seed)
            if node.target is while_loop and graph is graphs[1]:
                _carry_on(graph, given)
    return drawn


def _place(node: Node, graph: GraphModule) -> Node:
    """The node of a called graph before which its seeds are inputs."""
    first = len(node.args[2]) if node.target is while_loop else len(graph.graph.find_nodes(op="placeholder"))
    place: Node = list(graph.graph.nodes)[first]
    return place


def _carry_on(body: GraphModule, seed: Node) -> None:
    """Lets the body of a loop return the seed of the next step."""
    output = body.graph.output_node()
    with body.graph.inserting_before(output):
        following = _noted(body.graph.call_function(aten.add.Tensor, (seed, NEXT)), seed)
    output.args = ((*output.args[0], following),)


def _noted(node: Node, like: Node) -> Node:
    """The node with the notes of another one, and with a value of its own."""
    node.meta = like.meta | {"val": like.meta["val"].clone()}
    return node


def _call(gm: GraphModule, node: Node, graphs: Sequence[GraphModule], seeds: Sequence[Node]) -> None:
    """Lets the node call these graphs with the seeds, and without operands that are numbers."""
    called = []
    for i, graph in enumerate(graphs):
        name = f"{node.name}_graph_{i}"
        gm.add_submodule(name, graph)
        with gm.graph.inserting_before(node):
            called.append(gm.graph.get_attr(name))
    form = FORMS[node.target](node)
    if node.target is while_loop:
        others = form.operands[len(form.changing) :]
        node.args = (*called, (*form.changing, *seeds), _nodes(others))
        node.meta["val"] = (*node.meta["val"], *(seed.meta["val"].clone() for seed in seeds))
    else:
        node.args = (node.args[0], *called, (*_nodes(form.operands), *seeds))


def _nodes(operands: Sequence[Argument]) -> tuple[Node, ...]:
    return tuple(x for x in operands if isinstance(x, Node))
