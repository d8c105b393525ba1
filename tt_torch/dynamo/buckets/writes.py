"""Rules for ops of backward graphs. They write gradients to the places of the values, or flip them."""

from __future__ import annotations

import torch
from torch.fx import Node

from tt_torch.dynamo.buckets.lookups import looks_up
from tt_torch.dynamo.buckets.padding import Padding
from tt_torch.dynamo.buckets.registry import RULES, Tagged
from tt_torch.dynamo.buckets.rules import plain, run
from tt_torch.dynamo.types import Arguments

aten = torch.ops.aten


@RULES(aten.flip)
def flip(p: Padding, node: Node, a: Arguments) -> Tagged:
    """Reverses the real elements: a, b, c, padding becomes c, b, a, padding. The padding gets any real elements."""
    x, own = a["self"], p.of(node.args[0])
    for dim in (d % x.dim() for d in a["dims"]):
        if not own[dim]:
            x = torch.flip(x, [dim])
            continue
        if not plain(p, x.shape[dim], own[dim]):
            raise p.refused(node, "it turns a dimension of several sizes")
        (symbol,) = own[dim]
        places = (p.lengths[symbol] - 1 - torch.arange(x.shape[dim])).clamp(min=0)
        x = torch.index_select(x, dim, places)
    return x, own


@RULES(aten.index_put, aten._unsafe_index_put)
def index_put(p: Padding, node: Node, a: Arguments) -> Tagged:
    """An index_put that accumulates. The padding of the values adds zero at position 0. So, with (length) positions and
    values, only real values change a tensor of 9 elements."""
    own, given = p.of(node.args[0]), node.args[1]
    at = [d for d, i in enumerate(given) if i is not None]
    if any(own) or len(at) != 1 or not a.get("accumulate") or a["indices"][at[0]].dtype is torch.bool:
        raise p.refused(node, "it writes to a padded dimension, or overwrites")
    (dim,) = at
    tags = p.of(given[dim])
    places = p.masked(a["indices"][dim], tags, range(len(tags)), 0)
    values = p.masked(a["values"], p.of(node.args[2]), range(a["values"].dim()), 0)
    return run(node, a | {"indices": [None] * dim + [places], "values": values}), own


@RULES(aten.scatter, aten.scatter_add)
def scatter(p: Padding, node: Node, a: Arguments) -> Tagged:
    """Writes at positions along `dim`, where positions and values have no padding. Other dimensions keep their padding:
    values of (batch, 2) are written to a tensor of (batch, 9)."""
    own, index = p.of(node.args[0]), p.of(node.args[2])
    dim = a["dim"] % max(len(own), 1)
    source = p.of(node.args[3]) if isinstance(node.args[3], Node) and a.get("src") is not None else index
    others = [tags[:dim] + tags[dim + 1 :] for tags in (own, index, source)]
    if index[dim] or source[dim] or others[1] != others[0] or others[2] != others[0]:
        raise p.refused(node, "it writes to a padded dimension")
    if own:
        looks_up(p, node, node.args[0], dim)
    places = p.masked(a["index"], index, range(len(index)), 0)
    return run(node, a | {"index": places}), own
