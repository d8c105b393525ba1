"""Removes casts to the same dtype, copies that nobody can observe, and run-time asserts."""

from __future__ import annotations

import torch
from torch.fx import Graph, Node

from tt_torch.dynamo import facts
from tt_torch.dynamo.facts import Fact

aten = torch.ops.aten
# Dynamo has checked these facts already, and in a functional graph these ops have no other effect.
ASSERTS = {aten._assert_tensor_metadata.default}


def remove_redundant_casts(graph: Graph) -> None:
    for node in list(graph.nodes):
        if node.target in ASSERTS:
            graph.erase_node(node)
        elif _is_identity(node):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _is_identity(node: Node) -> bool:
    known = facts.of(node.target)
    if Fact.COPIES in known:
        return True
    return Fact.CASTS in known and node.args[0].meta["val"].dtype == node.meta["val"].dtype
