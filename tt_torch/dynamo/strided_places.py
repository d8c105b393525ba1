"""`as_strided` of a captured graph, written as plain views of the tensor in whose memory it reads or writes.

In the functional graph that PyTorch's capture makes, a view such as `x.diagonal()` has memory of its own, and a written
input has another offset. So places in memory would be other ones there. Plain views name elements.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from tt_torch.dynamo.decompositions.registry import memory_order
from tt_torch.dynamo.facts import called
from tt_torch.dynamo.in_place import base_of, first_operand
from tt_torch.dynamo.input_forms import changes_form
from tt_torch.dynamo.plain_views import Step, window
from tt_torch.torch_private.tracing import has_free_symbols

aten = torch.ops.aten
REASON = (
    "the graph has an as_strided() that leaves the elements or the dtype of its tensors, or its operand's elements "
    "where gradients are recorded, or stands beside a change of a shape in place"
)
INSTEAD = "call as_strided() on the whole tensor to which the memory belongs, and unsqueeze() or the like without `_`"
_CALLS = (aten.as_strided, aten.as_strided_copy)


@dataclass(frozen=True)
class _Places:
    """The tensor of which the elements are, and the views that make the result of it."""

    root: Node
    steps: tuple[Step, ...]


def leaves_tensors(gm: GraphModule) -> bool:
    """Whether an `as_strided` of a captured graph has elements that no tensor of the graph has. It is also true if the
    graph changes the form of a tensor in place, because its example then has only the last form."""
    strided = _strided(gm)
    return bool(strided) and (any(map(changes_form, gm.graph.nodes)) or None in map(_places, strided))


def with_plain_views(gm: GraphModule) -> None:
    """Puts plain views in the place of each `as_strided`. The caller has checked the graph with `leaves_tensors`."""
    for node in _strided(gm):
        places = _places(node)
        assert places
        steps = places.steps
        if called(node) is aten.as_strided_copy:
            steps = (*steps, ("contiguous",), ("clone",))
        view = places.root
        with gm.graph.inserting_before(node):
            for method, *args in steps:
                view = gm.graph.call_method(method, (view, *args))
                view.meta = dict(places.root.meta)  # its memory, of which a view in between is a part
        view.meta = dict(node.meta)
        node.replace_all_uses_with(view)
        gm.graph.erase_node(node)


def has_places(gm: GraphModule) -> bool:
    """Whether a captured graph calls `as_strided` with sizes that are numbers."""
    return bool(_strided(gm))


def _strided(gm: GraphModule) -> list[Node]:
    """The calls whose sizes are numbers. Others get examples for each set of sizes before they are compiled."""
    return [n for n in gm.graph.nodes if called(n) in _CALLS and not has_free_symbols(n.meta["example_value"])]


def _places(node: Node) -> _Places | None:
    view, root = _view(node), first_operand(node)
    if view.numel() and not root.meta["example_value"].numel():
        return None  # PyTorch's shape functions give empty views other offsets than its kernels do
    while (base := base_of(root)) and _is_tensor(base, view.dtype) and not _ends_gradients(root, base):
        root = base
    whole = root.meta["example_value"]
    order = memory_order(whole)
    shape, strides = tuple(view.shape), view.stride()
    first = int(view.storage_offset()) - int(whole.storage_offset())
    span = 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) if view.numel() else 0
    if whole.dtype != view.dtype or not whole.permute(order).is_contiguous():
        return None
    if view.numel() and not 0 <= first <= first + span <= whole.numel():
        return None
    if whole.requires_grad and not _are_elements(view, first_operand(node).meta["example_value"], whole):
        return None  # eager PyTorch gives these elements gradients only if somebody writes to the memory
    flat: tuple[Step, ...] = (("permute", tuple(order)), ("view", -1))
    if found := window(shape, strides, first, whole.numel()):
        return _Places(root, (*flat, ("narrow", 0, found.begin, found.size), *found.steps))
    # Elements that are at one place: PyTorch's capture refuses writes to such a view of a view.
    return _Places(root, (*flat, ("narrow", 0, first, span), ("as_strided", shape, strides)))


def _ends_gradients(view: Node, base: Node) -> bool:
    """Whether a view of its base has no gradients, so that views of the base may not take its place."""
    return called(view) is aten.detach and bool(base.meta["example_value"].requires_grad)


def _are_elements(view: torch.Tensor, operand: torch.Tensor, whole: torch.Tensor) -> bool:
    """Whether all elements of a view are those of an operand. Both are in the memory of the tensor `whole`."""
    there = torch.zeros(int(whole.numel()), dtype=torch.bool)

    def places(x: torch.Tensor) -> torch.Tensor:
        return there.as_strided(x.shape, x.stride(), int(x.storage_offset()) - int(whole.storage_offset()))

    places(operand).fill_(True)
    return bool(places(view).all())


def _view(node: Node) -> torch.Tensor:
    """The example of the view that a call makes, before `as_strided_copy` copies it."""
    if called(node) is aten.as_strided:
        return node.meta["example_value"]
    args, kwargs = map_arg((node.args, node.kwargs), lambda n: n.meta["example_value"])
    return torch.as_strided(*args, **kwargs)


def _is_tensor(node: Node, dtype: torch.dtype) -> bool:
    value = node.meta["example_value"]
    return isinstance(value, torch.Tensor) and value.dtype == dtype
