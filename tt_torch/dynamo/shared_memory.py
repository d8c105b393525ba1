"""Outputs that share memory in eager PyTorch, like a tensor and a view of it: the program returns that memory once."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch._prims_common import is_non_overlapping_and_dense_or_false
from torch.fx import GraphModule, Node


@dataclass(frozen=True)
class View:
    """An output as a view of one of the program's results."""

    result: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int  # elements from the start of the result's memory

    def of(self, results: Sequence[torch.Tensor]) -> torch.Tensor:
        return results[self.result].as_strided(self.shape, self.strides, self.offset)


def return_once(gm: GraphModule, seen: int) -> tuple[GraphModule, list[int | View]]:
    """The graph with the memory of outputs that share some returned once, and where each of its outputs is then.

    Only the first `seen` outputs are handed to the user; the others are kept for the backward pass, whose check of
    versions must not see what the user does to an output. `gm` itself is not changed.
    """
    (output,) = gm.graph.find_nodes(op="output")
    bases = _bases(gm, output.args[0][:seen])
    if not bases:
        return gm, list(range(len(output.args[0])))
    kept: list[Node] = []
    places: list[int | View] = []
    at: dict[Node, int] = {}
    for i, node in enumerate(output.args[0]):
        base = bases.get(i)
        if base is None or base not in at:
            kept.append(node if base is None else base)
            at[kept[-1]] = len(kept) - 1
        places.append(_place(node, base, at))
    gm = copy.copy(gm)
    before = gm.graph
    gm.graph = copy.deepcopy(before)
    copies = dict(zip(before.nodes, gm.graph.nodes, strict=True))
    copies[output].args = (tuple(copies[node] for node in kept),)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm, places


def _place(node: Node, base: Node | None, at: dict[Node, int]) -> int | View:
    if base is None or node is base:
        return at[node]
    value = node.meta["val"]
    return View(at[base], tuple(value.shape), value.stride(), value.storage_offset())


def _bases(gm: GraphModule, outputs: Sequence[Node]) -> dict[int, Node]:
    """For the position of each output that shares memory with another one, the node whose result is that memory."""
    sharing = defaultdict(list)
    for i, node in enumerate(outputs):
        sharing[_memory(node)].append(i)
    groups = {memory: group for memory, group in sharing.items() if len({outputs[i] for i in group}) > 1}
    bases: dict[int, Node] = {}
    for node in gm.graph.nodes if groups else ():
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or (group := groups.pop(_memory(node), None)) is None:
            continue
        same_type = all(outputs[i].meta["val"].dtype == value.dtype for i in group)
        if node.op == "call_function" and same_type and _fills_memory(value):
            bases |= dict.fromkeys(group, node)
    return bases


def _memory(node: Node) -> int:
    return node.meta["val"].untyped_storage()._cdata


def _fills_memory(value: torch.Tensor) -> bool:
    filled = value.numel() * value.element_size() == value.untyped_storage().nbytes()
    return filled and value.storage_offset() == 0 and is_non_overlapping_and_dense_or_false(value)
