"""Rules for ops that write by position, as caches and backward graphs do, and for flips."""

from __future__ import annotations

import torch
from torch.fx import Node

from tt_torch.dynamo import facts
from tt_torch.dynamo.buckets.lookups import looks_up
from tt_torch.dynamo.buckets.padding import Padding
from tt_torch.dynamo.buckets.registry import RULES, Tagged, Tags
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


def _last_again(p: Padding, node: Node, x: torch.Tensor, tags: Tags, dim: int) -> torch.Tensor:
    """`x` with its last real element in the padding of `dim`: a, b, padding becomes a, b, b. Of several values for one
    position the last one counts, so these positions and values write what they write without padding."""
    if not tags[dim]:
        return x
    if not plain(p, x.shape[dim], tags[dim]):
        raise p.refused(node, "it writes at positions of a dimension of several sizes")
    (symbol,) = tags[dim]
    return torch.index_select(x, dim, torch.arange(x.shape[dim]).minimum(p.lengths[symbol] - 1))


@RULES(aten.index_put, aten._unsafe_index_put)
def index_put(p: Padding, node: Node, a: Arguments) -> Tagged:
    """An index_put along one dimension, such as (length) positions and values for a tensor of 9 elements. The padding
    adds zero at position 0 if the op accumulates, and otherwise writes the last real value again."""
    own, given = p.of(node.args[0]), node.args[1]
    at = [d for d, i in enumerate(given) if i is not None]
    if any(own) or len(at) != 1 or a["indices"][at[0]].dtype is torch.bool:
        raise p.refused(node, "it writes to a padded dimension")
    (dim,) = at
    places, values, index, source = a["indices"][dim], a["values"], p.of(given[dim]), p.of(node.args[2])
    if a.get("accumulate"):
        places = p.masked(places, index, range(len(index)), 0)
        values = p.masked(values, source, range(values.dim()), 0)
    else:
        first = values.dim() - (len(own) - dim - 1) - len(index)  # where the dimensions of the positions begin
        for d in range(len(index)):
            places = _last_again(p, node, places, index, d)
            values = _last_again(p, node, values, source, first + d) if first + d >= 0 else values
    return run(node, a | {"indices": [None] * dim + [places], "values": values}), own


@RULES(aten.scatter, aten.scatter_add)
def scatter(p: Padding, node: Node, a: Arguments) -> Tagged:
    """Writes at positions along `dim`. The padding of the positions adds zero, or writes the last real value again. In
    other dimensions, padding stays padding: values of (batch, 2) are written to a tensor of (batch, 9)."""
    own, index = p.of(node.args[0]), p.of(node.args[2])
    dim = a["dim"] % max(len(own), 1)
    source = p.of(node.args[3]) if a.get("src") is not None else index
    others = [tags[:dim] + tags[dim + 1 :] for tags in (own, index, source)]
    if index[dim] != source[dim] or others[1] != others[0] or others[2] != others[0]:
        raise p.refused(node, "it writes to a padded dimension")
    if own:
        looks_up(p, node, node.args[0], dim)
    padding = list(range(len(index)))
    if facts.packet(node.target) is aten.scatter_add:
        a = a | {"src": p.masked(a["src"], source, [dim], 0)}
    else:
        a = a | {k: _last_again(p, node, a[k], index, dim) for k in ("index", "src") if a.get(k) is not None}
        padding = [d for d in padding if d != dim]
    return run(node, a | {"index": p.masked(a["index"], index, padding, 0)}), own
