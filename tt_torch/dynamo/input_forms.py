"""Graphs that give an input another shape or other strides in place, such as `x.add_(1).squeeze_()`.

AOTAutograd copies a written input from a result that has its own memory. If the graph also calls an op that changes the
form, AOTAutograd first gives the input the strides and the offset of this result. It does so even if the op changes
nothing. So the copy goes to other places in the caller's memory: `base[1]` becomes `base[0]`. All backends make this
error without a message. For `x.squeeze_()` on the input itself, Dynamo leaves the line to Python.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo.facts import called

REASON = "the graph changes the shape or the strides of an input in place, and PyTorch's capture would move it"
INSTEAD = "call squeeze(), t() or their like without `_`"
_DETACH = torch.ops.aten.detach_  # has the tag of these ops, but keeps the form


def changes_form_of_input(gm: GraphModule) -> bool:
    """Whether an op of a captured graph changes the form of an input. The result of `x.add_(1)` is `x` itself."""
    given = {
        id(x) for node in gm.graph.find_nodes(op="placeholder") if (x := node.meta.get("example_value")) is not None
    }
    return any(
        changes_form(node) and isinstance(x := node.args[0], Node) and id(x.meta.get("example_value")) in given
        for node in gm.graph.nodes
    )


def changes_form(node: Node) -> bool:
    """Whether a call only changes the shape and strides of its tensor, as `unsqueeze_` does."""
    op = called(node)
    if op is None or op is _DETACH or not node.args:
        return False
    return any(torch.Tag.inplace_view in getattr(op, name).tags for name in op.overloads())
