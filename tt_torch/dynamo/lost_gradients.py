"""Graphs that return a view of an input with other gradients than the input has.

In eager PyTorch, `y = x.detach(); y.add_(v); return y` returns a `y` whose gradient reaches `v`. AOTAutograd treats `y`
as a view of `x`, and makes it from `x` after the call. So `v` gets no gradient. In the same way, the gradient of a view
that is made under `no_grad` stays with the view, and would reach `x`. All backends make these errors without a message.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule, Node

from tt_torch.torch_private.tensors import root_of, storage_of

REASON = (
    "the graph returns a detached input after a write with gradients, or a view that no_grad() cuts from an input, and "
    "PyTorch's capture would give it the gradients of the input"
)
INSTEAD = "write to a clone() of the detached tensor, and return a detach() of the view"


def loses_gradients(gm: GraphModule) -> bool:
    """Whether a result of a captured graph has an input's memory, and gradients that are not the input's."""
    given = _examples(gm.graph.find_nodes(op="placeholder"))
    memory, roots = set(map(storage_of, given)), {id(root) for x in given for root in (x, root_of(x))}
    (results,) = gm.graph.output_node().args
    made = [value for value in results if isinstance(value, Node) and value.op not in ("placeholder", "get_attr")]
    return any(
        y.requires_grad and storage_of(y) in memory and (id(root_of(y)) not in roots or not _reaches(y, given))
        for y in _examples(made)
    )


def _reaches(view: torch.Tensor, given: list[torch.Tensor]) -> bool:
    """Whether the gradient of a view is passed on to one of the inputs, or to what these are views of."""
    bases = [base for x in given for base in (x, root_of(x)) if base.requires_grad]
    ends = [base.grad_fn or base for base in bases]
    try:
        nodes = [view.grad_fn]
    except RuntimeError:  # PyTorch gives no gradient of a view under no_grad() after a write to its base
        return False
    for node in nodes:  # it grows
        if any(end is node or end is getattr(node, "variable", None) for end in ends):
            return True
        nodes += [following for following, _ in node.next_functions if following not in nodes] if node else []
    return False


def _examples(nodes: list[Node]) -> list[torch.Tensor]:
    """The examples of tensors, as the whole graph leaves them."""
    values = [node.meta.get("example_value") for node in nodes]
    return [x for x in values if isinstance(x, torch.Tensor) and x.layout is torch.strided]
