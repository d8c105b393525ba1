"""Graphs that give an input another shape or other strides in place, such as `x.add_(1).squeeze_()`.

AOTAutograd copies a written input from a result that has its own memory. If the graph also calls an op that changes the
form, AOTAutograd first gives the input the strides and the offset of this result. It does so even if the op changes
nothing. So the copy goes to other places in the caller's memory: `base[1]` becomes `base[0]`. All backends make this
error without a message. For `x.squeeze_()` on the input itself, Dynamo leaves the line to Python.

A result that changes its form is replaced by a view, because passes read examples.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo.examples import VALUES_DECIDE, renew_examples
from tt_torch.dynamo.facts import called
from tt_torch.dynamo.passes.rewriting import copied

REASON = "the graph changes the shape or the strides of an input in place, and PyTorch's capture would move it"
INSTEAD = "call squeeze(), t() or their like without `_`"
_TWINS = ("as_strided_", "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_")
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


def without_form_changes(gm: GraphModule) -> GraphModule:
    """The captured graph, or a copy of it in which later calls use `y.t()` instead of `y` after `y.t_()`. Then the
    example of a node has the form that its value has at this node, and not the last one.

    A graph in which an input changes its form stays as it is.
    """
    if changes_form_of_input(gm) or not any(map(_has_twin, gm.graph.nodes)):
        return gm
    captured, gm = gm, copied(gm)
    for node in filter(_has_twin, list(gm.graph.nodes)):
        tensor = node.args[0].meta["example_value"]
        nodes = list(gm.graph.nodes)
        later = set(nodes[nodes.index(node) + 1 :])
        with gm.graph.inserting_before(node):
            twin = gm.graph.call_method(_name(node).removesuffix("_"), node.args, node.kwargs)
        twin.meta = dict(node.meta)
        for same in [n for n in nodes if n is node or n.meta.get("example_value") is tensor]:
            same.replace_all_uses_with(twin, delete_user_cb=later.__contains__)
        gm.graph.erase_node(node)
    gm.recompile()
    try:
        renew_examples(gm)
    except VALUES_DECIDE:  # the capture finds this out, too
        return captured
    return gm


def _has_twin(node: Node) -> bool:
    """Whether a call changes the form of a tensor in place, and a method without `_` gives a view in that form."""
    return changes_form(node) and _name(node) in _TWINS


def _name(node: Node) -> str:
    op = called(node)
    return op.__name__ if op else ""
