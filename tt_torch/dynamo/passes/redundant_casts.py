"""Removes casts to the same dtype, copies that nobody can observe, views of the same shape, and run-time asserts."""

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
        elif operand := _unchanged(node):
            node.replace_all_uses_with(operand)
            graph.erase_node(node)


def _unchanged(node: Node) -> Node | None:
    """The operand, if the result has the same elements at the same places.

    torch-mlir removes views of the same shape, too, but only after our rules.
    """
    known = facts.of(node.target)
    if node.target is aten.cat.default and len(node.args[0]) == 1:
        return node.args[0][0]
    if not node.args or not isinstance(operand := node.args[0], Node):
        return None  # functions of vmap() may cast a Python number
    if Fact.CASTS in known:
        return operand if operand.meta["val"].dtype == node.meta["val"].dtype else None
    if known & (Fact.RESHAPES | Fact.EXTENTS):
        return operand if operand.meta["val"].shape == node.meta["val"].shape else None
    return operand if Fact.COPIES in known else None
