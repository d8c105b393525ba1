"""A chip's own part of numbers that follow from positions and seeds: each chip computes its part only.

Random numbers of a DTensor are drawn for the whole tensor, and each chip takes its part. For two chips,

    %p = arange(8), %n = hash(%p + %seed)                    each of eight numbers
    %own = tt_mesh.mesh_partition(%n, dim=0)

becomes

    %p = arange(8), %q = tt_mesh.mesh_partition(%p, dim=0)
    %own = hash(%q + %seed)                                  four numbers
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from tt_torch.dynamo import facts, mesh_ops
from tt_torch.dynamo.facts import Fact
from tt_torch.dynamo.passes.rewriting import call, value

PARTITION = mesh_ops.mesh_partition
OTHER = Fact.ZEROS | Fact.DRAWS | Fact.ALLOCATES  # their elements depend on their places, or are drawn


def compute_own_parts(graph: Graph) -> None:
    """Replaces a part of a function of positions by the same function of a part of the positions."""
    if not graph.find_nodes(op="call_function", target=PARTITION):
        return
    positions = _of_positions(graph)
    for node in graph.find_nodes(op="call_function", target=PARTITION):
        (x,) = node.args
        if x in positions and _is_step(x):
            with graph.inserting_before(node):
                new = _computed(node, _needed(x, node.kwargs["dim"]))
            node.replace_all_uses_with(new)
            graph.erase_node(node)


def _is_step(x: Node) -> bool:
    """Whether the op, applied to parts of its operands, gives a part of its result."""
    known = facts.of(x.target)
    if Fact.RESHAPES in known:
        return _sizes(x) == _sizes(x.all_input_nodes[0])
    is_elementwise = Fact.ELEMENTWISE in known and not OTHER & known and isinstance(x.meta.get("val"), Tensor)
    return is_elementwise or x.target is PARTITION


def _sizes(x: Node) -> list[int]:
    """The shape without dimensions of one element, which a reshape may add and take away."""
    return [size for size in value(x).shape if size != 1]


def _of_positions(graph: Graph) -> set[Node]:
    """The nodes whose elements follow from positions, constants and tensors of one element."""
    found: set[Node] = set()
    for x in graph.nodes:
        if isinstance(x.meta.get("val"), Tensor):
            made = Fact.CREATES in facts.of(x.target) or x.meta["val"].numel() == 1
            if made or (x.args and _is_step(x) and found.issuperset(x.all_input_nodes)):
                found.add(x)
    return found


def _needed(x: Node, dim: int) -> dict[Node, dict[int, None]]:
    """The nodes whose parts are needed for the part of `x` along `dim`, each with the dimensions of its parts.
    An op comes before its operands."""
    needed = defaultdict[Node, dict[int, None]](dict, {x: {dim: None}})
    node = x
    while node.op != "root":
        for at in needed.get(node, ()) if _is_step(node) else ():
            for operand, along in _operands(node, at):
                needed[operand][along] = None
        node = node.prev
    return needed


def _operands(x: Node, dim: int) -> list[tuple[Node, int]]:
    """The operands of which the part of `x` along `dim` reads a part, and the dimensions of these parts."""
    if x.target is PARTITION:
        return [] if x.kwargs["dim"] == dim else [(x.args[0], dim)]
    if Fact.RESHAPES in facts.of(x.target):
        (y,) = x.all_input_nodes
        split = sum(size != 1 for size in value(x).shape[:dim])
        return [(y, [i for i, size in enumerate(value(y).shape) if size != 1][split])]
    aligned = [(y, dim + value(y).dim() - value(x).dim()) for y in x.all_input_nodes]
    return [(y, at) for y, at in aligned if at >= 0 and value(y).shape[at] > 1]


def _computed(partition: Node, needed: dict[Node, dict[int, None]]) -> Node:
    """The part that `partition` takes, computed from the parts of all `needed` nodes."""
    made: dict[tuple[Node, int], Node] = {}
    new = partition
    for x, dims in sorted(needed.items()):
        for dim in dims:
            operands = dict(_operands(x, dim)) if _is_step(x) else {}
            new = made[x, dim] = _part(partition, x, dim, {y: made[y, at] for y, at in operands.items()})
    return new


def _part(partition: Node, x: Node, dim: int, operands: dict[Node, Node]) -> Node:
    if not operands:
        return call(partition, PARTITION, x, **partition.kwargs | {"dim": dim})
    args, kwargs = map_arg((x.args, dict(x.kwargs)), lambda y: operands.get(y, y))
    if Fact.RESHAPES in facts.of(x.target):
        shape: list[Any] = list(value(x).shape)
        shape[dim] //= partition.kwargs["count"]
        args = (args[0], shape)
    return call(partition, x.target, *args, **kwargs)
