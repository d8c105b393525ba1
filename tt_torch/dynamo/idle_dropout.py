"""Dropout that drops nothing: in evaluation, or with a probability of zero.

Eager PyTorch returns the tensor itself, so a later write in place reaches it. PyTorch's capture makes a copy: after
`d = dropout(h); d.add_(1)`, `h` would still have its old values. All backends make this error without a message.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo.facts import called
from tt_torch.dynamo.in_place import examples
from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.torch_private.tensors import storage_of


def without_idle_dropout(gm: GraphModule) -> GraphModule:
    """The captured graph, or a copy of it in which operands take the place of the results of idle dropout."""
    if not any(map(_is_idle, gm.graph.nodes)):
        return gm
    gm = copied(gm)
    for node in filter(_is_idle, list(gm.graph.nodes)):
        operand = node.all_input_nodes[0]  # the probability may be another one
        operand.meta["copies"] = [*operand.meta.get("copies", ()), *map(storage_of, examples(node))]
        node.replace_all_uses_with(operand)
        gm.graph.erase_node(node)
    gm.recompile()
    return gm


def _is_idle(node: Node) -> bool:
    if node.target is torch.nn.functional.dropout:
        trains = "training"
    elif called(node) is torch.ops.aten.dropout:
        trains = "train"
    else:
        return False
    given = {"p": 0.5, trains: True, **dict(zip(("input", "p", trains), node.args, strict=False)), **node.kwargs}
    return given[trains] is False or given["p"] == 0
