"""Graphs that read or write the memory of a result by strides, such as `x.cummax(0)[1].fill_diagonal_(1)`.

Such a call names places in memory. AOTAutograd finds the elements in these places while it traces our decompositions,
and a decomposition may give its result other strides than PyTorch's own op does. The call would then read or write
other elements. In the same way, strides decide whether `reshape` gives a view or a copy, and so whether a write to one
of its two sides reaches the other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo.decompositions.registry import memory_order
from tt_torch.dynamo.facts import called
from tt_torch.dynamo.in_place import base_of, examples, first_operand, written_by
from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.dynamo.strided_places import has_places, with_plain_views
from tt_torch.dynamo.types import Arguments
from tt_torch.torch_private.tensors import storage_of
from tt_torch.torch_private.tracing import set_grad_enabled

aten = torch.ops.aten
BY_STRIDES = (aten.as_strided, aten.as_strided_, aten.as_strided_copy, aten.as_strided_scatter, aten.fill_diagonal_)
VIEW_OR_COPY = (aten.reshape, aten.reshape_as, aten.flatten, aten.ravel, aten.contiguous)


def in_memory_of_eager(gm: GraphModule) -> GraphModule:
    """The graph, or a copy of it. In the copy, each result that is read or written by strides is first copied into the
    strides of eager PyTorch. `fill_diagonal_` of a matrix becomes a write to `diagonal`, which names elements, and
    `as_strided` becomes plain views of the tensor whose memory it names.

    An input has its strides, but a write to a view of it, as in `x.t().fill_(4)`, gives it others in the functional
    graph. So it is written to itself before a later call by strides."""
    changed = {storage_of(x) for node in gm.graph.nodes for target in written_by(node) for x in examples(target)}
    if not (has_places(gm) or any(_owner(node, changed) or _is_copy(node, changed) for node in gm.graph.nodes)):
        return gm
    gm = copied(gm)
    for node in gm.graph.nodes:
        if called(node) is aten.fill_diagonal_ and _owner(node, changed) and _names_elements(node):
            _write_to_diagonal(node)
    for node in [node for node in gm.graph.nodes if _is_copy(node, changed)]:
        with gm.graph.inserting_before(node):
            copy = gm.graph.call_method("clone", (first_operand(node),), {"memory_format": torch.contiguous_format})
        copy.meta = dict(node.meta)
        node.replace_input_with(first_operand(node), copy)
    so_far, records = set[int](), torch.is_grad_enabled()
    for node in list(gm.graph.nodes):
        if node.target is set_grad_enabled:
            records = bool(node.args[0])
        owner = _owner(node, changed)
        if owner and _is_given(owner) and so_far.intersection(map(storage_of, examples(owner))):
            _write_to_itself(owner, node, records)
        so_far.update(storage_of(x) for target in written_by(node) for x in examples(target))
    owners = {owner: None for node in gm.graph.nodes if (owner := _owner(node, changed))}
    with_plain_views(gm)
    for owner in owners:
        if not _is_given(owner):
            _copy_after(owner)
    gm.recompile()
    return gm


def _owner(node: Node, changed: Collection[int]) -> Node | None:
    """The result or the input whose memory a call reads or writes by strides; None for other calls, and for an input to
    which the graph does not write. `changed` has the memories to which the graph writes."""
    if called(node) in VIEW_OR_COPY:
        if not any(storage_of(x) in changed for each in (node, first_operand(node)) for x in examples(each)):
            return None
    elif called(node) not in BY_STRIDES:
        return None
    owner = above = first_operand(node)
    while above := base_of(above):
        owner = above if isinstance(above.meta["example_value"], torch.Tensor) else owner
    if not _is_given(owner):
        return owner if examples(owner) else None
    is_written = any(storage_of(x) in changed for x in examples(owner))
    return owner if is_written and called(node) in BY_STRIDES else None


def _is_given(node: Node) -> bool:
    return node.op in ("placeholder", "get_attr")


def _is_copy(node: Node, changed: Collection[int]) -> bool:
    """Whether a `contiguous` or the like gives a copy, and the graph writes to it or to its operand.

    In the functional graph, a view with gaps, as of `unfold`, may have none, and then the result would be a view of it.
    """
    if called(node) not in VIEW_OR_COPY:
        return False
    operand, result = ({*map(storage_of, examples(each))} for each in (first_operand(node), node))
    return not operand & result and bool((operand | result) & set(changed))


def _names_elements(node: Node) -> bool:
    """Whether `fill_diagonal_` writes to the diagonal of a matrix only, and not to further ones below it."""
    wraps = node.kwargs.get("wrap", node.args[2] if len(node.args) > 2 else False)
    return first_operand(node).meta["example_value"].dim() == 2 and wraps is False


def _write_to_diagonal(node: Node) -> None:
    filled = first_operand(node)
    number = node.args[1] if len(node.args) > 1 else node.kwargs["fill_value"]
    with node.graph.inserting_before(node):
        diagonal = node.graph.call_method("diagonal", (filled,))
        diagonal.meta = dict(node.meta) | {"example_value": filled.meta["example_value"].diagonal()}
        written = node.graph.call_method("fill_", (diagonal, number))
        written.meta = dict(diagonal.meta)
    node.replace_all_uses_with(filled)
    node.graph.erase_node(node)


def _is_dense(value: torch.Tensor, order: Sequence[int]) -> bool:
    """Whether the elements lie in memory without gaps, in this order of dimensions. It is computed from the strides,
    because an example inside of a `vmap` accepts no ops after it."""
    count = 1
    for d in reversed(order):
        if value.shape[d] != 1 and value.stride(d) != count:
            return False
        count *= value.shape[d]
    return True


def _copied_behind(after: Node, owner: Node) -> Node | None:
    """A copy of a tensor in its strides, behind a node. There is none for a tensor with gaps."""
    value = owner.meta["example_value"]
    order = memory_order(value)
    if not _is_dense(value, order):
        return None
    steps: list[tuple[str, tuple[object, ...], Arguments]] = [("clone", (), {"memory_format": torch.contiguous_format})]
    if order != sorted(order):
        steps = [("permute", (order,), {}), *steps, ("permute", ([order.index(d) for d in sorted(order)],), {})]
    copy = owner
    for method, args, named in steps:
        with owner.graph.inserting_after(after):
            after = copy = owner.graph.call_method(method, (copy, *args), named)
        copy.meta = dict(owner.meta)
    return copy


def _copy_after(owner: Node) -> None:
    """Puts a copy in the place of a result. A result that eager PyTorch leaves with gaps stays as it is."""
    readers = list(owner.users)
    if copy := _copied_behind(owner, owner):
        for reader in readers:
            reader.replace_input_with(owner, copy)


def _write_to_itself(given: Node, reader: Node, records: bool) -> None:
    """Writes a copy of an input to it, before a call that reads it by strides. `copy_` would keep its strides.

    The write changes no number, so it is one without gradients. `records` says whether PyTorch records them here."""
    if copy := _copied_behind(reader.prev, given):
        graph = given.graph
        with graph.inserting_before(reader):
            graph.call_function(set_grad_enabled, (False,))
            written = graph.call_function(aten.alias_copy.out, (copy,), {"out": given})
            graph.call_function(set_grad_enabled, (records,))
        written.meta = dict(given.meta)
