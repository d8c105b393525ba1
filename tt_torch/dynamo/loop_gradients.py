"""Gradients of `while_loop`. They need the values of all steps, and nothing knows the number of steps in advance."""

from __future__ import annotations

import torch
from torch.fx import GraphModule

from tt_torch.torch_private.ops import while_loop

REASON = "AOTAutograd cannot capture the gradient of a while_loop"
INSTEAD = "call the model under torch.no_grad(), or write a loop with a known number of steps as a scan"


def takes_gradient(gm: GraphModule) -> bool:
    """Whether a graph has a `while_loop` whose result requires a gradient."""
    loops = gm.graph.find_nodes(op="call_function", target=while_loop)
    results = (x for node in loops for x in node.meta.get("example_value", ()))
    return any(isinstance(x, torch.Tensor) and x.requires_grad for x in results)
