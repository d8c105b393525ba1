"""What has no elements is not computed: torch-mlir's lowerings of many ops do not hold for it."""

from __future__ import annotations

import torch
from torch.fx import Graph

from tt_torch.dynamo.passes.rewriting import call

aten = torch.ops.aten


def replace_empty_results(graph: Graph) -> None:
    """Each tensor without elements becomes a constant of its shape."""
    for node in list(graph.nodes):
        found = node.meta.get("val")
        if node.op != "call_function" or not isinstance(found, torch.Tensor) or found.numel():
            continue
        with graph.inserting_before(node):
            empty = call(node, aten.full.default, list(found.shape), 0, dtype=found.dtype)
        node.replace_all_uses_with(empty)
        graph.erase_node(node)
    graph.eliminate_dead_code()
