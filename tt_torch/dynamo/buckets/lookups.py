"""Rules for ops that look elements up by their positions. Positions in the padding become 0, which always exists."""

from __future__ import annotations

import torch
from torch.fx import Node

from tt_torch.dynamo import facts
from tt_torch.dynamo.buckets.padding import Padding
from tt_torch.dynamo.buckets.registry import RULES, Tagged
from tt_torch.dynamo.buckets.rules import broadcast, plain, run
from tt_torch.dynamo.types import Arguments

aten = torch.ops.aten


def looks_up(p: Padding, node: Node, x: Node, dim: int) -> None:
    """Refuses an op that finds elements of `x` by their positions along `dim`, if padding changes these positions.

    In a dimension of batch * length whose length is padded, only the first `length` elements keep their positions.
    """
    if p.of(x)[dim] and not plain(p, p.shape(x)[dim], p.of(x)[dim]):
        raise p.refused(node, "it looks up positions of a dimension of several sizes")


@RULES(aten.embedding)
def embedding(p: Padding, node: Node, a: Arguments) -> Tagged:
    """(length) positions in a table of (100, 4) give (length, 4). The padding gets row 0, which nobody reads."""
    weight, indices = (p.of(n) for n in node.args[:2])
    looks_up(p, node, node.args[0], 0)
    places = p.masked(a["indices"], indices, range(len(indices)), 0)
    return run(node, a | {"indices": places}), (*indices, *weight[1:])


@RULES(aten.gather, aten.index_select)
def gather(p: Padding, node: Node, a: Arguments) -> Tagged:
    """`index_select` of (9, 4) with (length) positions gives (length, 4); `gather` gives the shape of the positions."""
    own, index = p.of(node.args[0]), p.of(node.args[2])
    dim = a["dim"] % max(len(own), 1)
    if own:
        looks_up(p, node, node.args[0], dim)
    selects = facts.packet(node.target) is aten.index_select
    if not selects and own[:dim] + own[dim + 1 :] != index[:dim] + index[dim + 1 :]:
        raise p.refused(node, "its operands are padded differently")
    places = p.masked(a["index"], index, range(len(index)), 0)
    tags = (*own[:dim], *index, *own[dim + 1 :]) if selects else index
    return run(node, a | {"index": places}), tags


@RULES(aten.index, aten._unsafe_index)
def index(p: Padding, node: Node, a: Arguments) -> Tagged:
    """`x[i]` of (9, 4) with positions of (length) gives (length, 4). A negative position counts from the real end: -1
    in a length of 5 that is padded to 8 is 4."""
    own, given = p.of(node.args[0]), {d: n for d, n in enumerate(node.args[1]) if isinstance(n, Node)}
    if any(a["indices"][d].dtype is torch.bool for d in given):
        raise p.refused(node, "it picks by a mask")
    places = list(a["indices"])
    for d, n in given.items():
        looks_up(p, node, node.args[0], d)
        places[d] = p.masked(places[d], p.of(n), range(len(p.of(n))), 0)
        for symbol in own[d]:  # a negative position counts from the real end
            places[d] = torch.where(places[d] < 0, places[d] + p.lengths[symbol], places[d])
    tags = broadcast(p, node, list(given.values()), max(places[d].dim() for d in given))
    first, last = min(given), max(given)
    rest = tuple(t for d, t in enumerate(own) if d not in given)
    front = first if last - first < len(given) else 0  # 0 if the indexed dimensions are not neighbours
    return run(node, a | {"indices": places}), (*rest[:front], *tags, *rest[front:])
