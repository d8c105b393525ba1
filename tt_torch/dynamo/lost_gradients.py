"""Graphs that return a detached input to which they have written something with gradients.

In eager PyTorch, `y = x.detach(); y.add_(v); return y` returns a `y` whose gradient reaches `v`. AOTAutograd treats `y`
as a view of `x`, and makes it from `x` after the call. So `v` gets no gradient. All backends make this error without a
message.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from tt_torch.torch_private.tensors import root_of, storage_of

REASON = "the graph returns a detached input after a write with gradients, which PyTorch's capture would lose"
INSTEAD = "write to a clone() of the detached tensor"


def loses_gradients(gm: GraphModule) -> bool:
    """Whether a result of a captured graph has an input's memory, and gradients that do not come from the input."""
    given = _examples(gm.graph.find_nodes(op="placeholder"))
    memory, roots = set(map(storage_of, given)), {id(root) for x in given for root in (x, root_of(x))}
    (results,) = gm.graph.output_node().args
    return any(
        y.requires_grad and storage_of(y) in memory and id(root_of(y)) not in roots
        for y in _examples([value for value in results if isinstance(value, Node)])
    )


def _examples(nodes: list[Node]) -> list[torch.Tensor]:
    """The examples of tensors, as the whole graph leaves them."""
    values = [node.meta.get("example_value") for node in nodes]
    return [x for x in values if isinstance(x, torch.Tensor) and x.layout is torch.strided]
