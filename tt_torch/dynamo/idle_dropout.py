"""Dropout that drops nothing: in evaluation, or with a probability of zero.

Eager PyTorch returns the tensor itself, so a later write in place reaches it. PyTorch's capture makes a copy: after
`d = dropout(h); d.add_(1)`, `h` would still have its old values. All backends make this error without a message.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo.examples import VALUES_DECIDE, renew_examples
from tt_torch.dynamo.facts import called
from tt_torch.dynamo.in_place import examples, written_by
from tt_torch.dynamo.input_forms import changes_form_of_input
from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.torch_private.tensors import storage_of
from tt_torch.torch_private.tracing import has_free_symbols


def without_idle_dropout(gm: GraphModule) -> GraphModule:
    """The captured graph, or a copy of it in which operands take the place of the results of idle dropout."""
    if not any(map(is_idle, gm.graph.nodes)):
        return gm
    gm = copied(gm)
    dropped = {storage_of(x) for node in filter(is_idle, gm.graph.nodes) for x in examples(node)}
    for node in filter(is_idle, list(gm.graph.nodes)):
        node.replace_all_uses_with(node.all_input_nodes[0])  # the probability may be another one
        gm.graph.erase_node(node)
    gm.recompile()
    if _shares_memory(gm, dropped):
        with suppress(*VALUES_DECIDE):
            renew_examples(gm)
    return gm


def _shares_memory(gm: GraphModule, dropped: Collection[int]) -> bool:
    """Whether it matters that the examples behind a dropout have another memory than its operand: the graph writes to
    tensors, or returns a view of a result of dropout. New examples take time. In symbols, they would have new ones, but
    such a graph gets examples for each set of sizes."""
    (output,) = gm.graph.find_nodes(op="output")
    written = any(written_by(node) for node in gm.graph.nodes)
    returned = any(storage_of(x) in dropped for node in output.all_input_nodes for x in examples(node))
    fixed = not any(has_free_symbols(x) for node in gm.graph.find_nodes(op="placeholder") for x in examples(node))
    return (written or returned) and fixed and not changes_form_of_input(gm)


def is_idle(node: Node) -> bool:
    """Whether a node is a call of dropout that drops nothing."""
    if node.target is torch.nn.functional.dropout:
        trains = "training"
    elif called(node) is torch.ops.aten.dropout:
        trains = "train"
    else:
        return False
    given = {"p": 0.5, trains: True, **dict(zip(("input", "p", trains), node.args, strict=False)), **node.kwargs}
    return given[trains] is False or given["p"] == 0
