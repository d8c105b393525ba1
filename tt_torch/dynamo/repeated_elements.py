"""Graphs that write to tensors of which several elements are at one place in memory, such as `x.expand(3, 4).fill_(2)`.
Graphs that write to windows which leave elements out, such as `x.unfold(0, 2, 3).fill_(2)`.

PyTorch makes such a graph functional. For `expand`, it adds the changes of all repetitions to each element: `fill_(33)`
over 15 rows would add 15 times the difference. Even one repetition gives `x + (33 - x)`, which is NaN for an infinite
`x`. For other strides, such as those of `as_strided`, the other elements at the place keep their old value. Elements
that windows leave out become zero. All backends make these errors without a message.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo.facts import called
from tt_torch.dynamo.in_place import base_of, examples, written_by
from tt_torch.dynamo.input_forms import changes_form
from tt_torch.dynamo.passes.rewriting import copied

REASON = (
    "the graph writes to elements at one place in memory, as of expand(), or to windows of unfold() that leave "
    "elements out, and PyTorch's capture would do this in a wrong way"
)
INSTEAD = "write to the tensor before expand(), unfold() or as_strided(), or to a clone() behind it"
_EXPAND = [getattr(torch.ops.aten, name) for name in ("expand", "expand_as", "broadcast_to")]
_EXPAND_SEVERAL = [getattr(torch.ops.aten, name) for name in ("broadcast_tensors", "meshgrid")]


def writes_to_repeated(gm: GraphModule) -> bool:
    """Whether a captured graph writes to an input, to a view, or to a view of them, that repeats elements or is made of
    windows that leave elements out."""
    return any(_repeats(view) or called(view) in _EXPAND_SEVERAL or _leaves_out(view) for view in _written_tensors(gm))


def with_views(gm: GraphModule) -> GraphModule:
    """The graph, or a copy of it. In the copy, each `expand` that is written to is a plain view. The caller has
    checked with `writes_to_repeated` that these repeat nothing."""
    if not any(called(node) in _EXPAND for node in _written_tensors(gm)):
        return gm
    gm = copied(gm)
    for node in {node: None for node in _written_tensors(gm) if called(node) in _EXPAND}:
        with gm.graph.inserting_before(node):
            view = _same_elements(node)
        view.meta = dict(node.meta)
        node.replace_all_uses_with(view)
        gm.graph.erase_node(node)
    gm.recompile()
    return gm


def _same_elements(node: Node) -> Node:
    """A view in the place of an `expand` that repeats nothing.

    Its sizes come from the arguments. The example of a node may have others: a later `unsqueeze_` changes it.
    """
    named = {name: node.kwargs[name] for name in ("input", "size", "other") if name in node.kwargs}
    values = [*node.args, *named.values()]
    method, (base, *given) = node.graph.call_method, values
    if called(node) is torch.ops.aten.expand_as:
        return method("view_as", (base, given[0]))
    sizes = [size for part in given for size in (part if isinstance(part, (list, tuple)) else (part,))]
    kept = [method("size", (base, i - len(sizes))) if size == -1 else size for i, size in enumerate(sizes)]
    return method("view", (base, *kept))


def _written_tensors(gm: GraphModule) -> list[Node]:
    return [tensor for node in gm.graph.nodes for tensor in _written(node)]


def _written(node: Node) -> Iterator[Node]:
    """The tensors to which a call writes elements, and the tensors of which they are views."""
    for into in () if changes_form(node) else written_by(node):
        while into:
            yield into
            into = base_of(into)


def _leaves_out(node: Node) -> bool:
    base = base_of(node) if called(node) is torch.ops.aten.unfold else None
    return base is not None and [x.numel() for x in examples(node)] != [x.numel() for x in examples(base)]


def _repeats(node: Node) -> bool:
    """Whether some elements may be at one place in memory: a step of one dimension does not lead beyond all elements
    of the dimensions with smaller steps."""
    for x in examples(node):
        end = 0
        for stride, size in sorted(zip(x.stride(), x.shape, strict=True)):
            if size != 1 and stride <= end:
                return True
            end += (size - 1) * stride
    return False
