"""Notes that Dynamo writes on a graph that it captures, and that AOTAutograd reads."""

from __future__ import annotations

from torch.fx import GraphModule


# 2.13.0: without it, AOTAutograd would not see which inputs of a copied graph are parameters that stay on the device.
def keep_notes(gm: GraphModule, copy: GraphModule) -> None:
    """Gives a copy with the same placeholders the notes of `gm`, if Dynamo has captured it."""
    copy.meta = dict(gm.meta)
    if hasattr(gm, "_param_name_to_source"):
        copy._param_name_to_source = gm._param_name_to_source
        for old, new in zip(*(g.graph.find_nodes(op="placeholder") for g in (gm, copy)), strict=True):
            if hasattr(old, "_dynamo_source"):
                new._dynamo_source = old._dynamo_source
