"""Streams and events in a compiled region: `torch.tt.synchronize()`, `event.record()`, `stream.wait_stream(other)`.

On the device, the work of all streams runs in the order of the program, and a compiled graph is one piece of work.
Stream ops before the first op of the region are done before the graph runs, and all other stream ops after it. They are
removed from the graph, because AOTAutograd would put ops of a stream into separate functions. It would also need a GPU
if there are gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.torch_private.dynamo import STREAM_OPS

# The results of calls that create an event or a stream, or that ask whether it is done.
NO_WORK = (torch.Event, torch.Stream, bool)

Call = Callable[[], Any]


def without_streams(gm: GraphModule) -> tuple[GraphModule, list[Call], list[Call]]:
    """A graph of Dynamo without stream ops, the calls to make before it, and the calls to make after it.

    `gm` is not changed.
    """
    before: list[Call] = []
    after: list[Call] = []
    if any(_is_bound(n) for graph in gm.modules() if isinstance(graph, GraphModule) for n in graph.graph.nodes):
        gm = _take_out(gm, before, after)
    return gm, before, after


def around(run: Function, before: list[Call], after: list[Call]) -> Function:
    """`run`, with calls before it and after it."""
    if not (before or after):
        return run

    def call(*inputs: Argument) -> Result:
        for op in before:
            op()
        results = run(*inputs)
        for op in after:
            op()
        return results

    return call


def _is_bound(node: Node) -> bool:
    return node.target in STREAM_OPS or "stream" in node.meta.get("custom", {})


def _take_out(gm: GraphModule, before: list[Call], after: list[Call]) -> GraphModule:
    """A copy of the graph and of its subgraphs, without stream ops. The stream ops are appended to the lists."""
    gm = copied(gm)
    called = {name: child for name, child in gm.named_children() if isinstance(child, GraphModule)}
    calls = before
    for node in list(gm.graph.nodes):
        node.meta["custom"] = {key: value for key, value in node.meta.get("custom", {}).items() if key != "stream"}
        if node.op == "get_attr" and node.target in called:
            setattr(gm, node.target, _take_out(called[node.target], after, after))
        elif node.target in STREAM_OPS:
            if not node.all_input_nodes:  # an op with inputs only keeps the memory of a tensor alive
                calls.append(partial(node.target, *node.args))
            gm.graph.erase_node(node)
        elif node.op.startswith("call") and not isinstance(node.meta.get("example_value"), NO_WORK):
            calls = after
    gm.recompile()
    return gm
