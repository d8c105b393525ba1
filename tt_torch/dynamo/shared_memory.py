"""The memory of outputs as in eager PyTorch: a tensor and its view share memory, and strides are the same as there."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo import facts
from tt_torch.dynamo.calls import (
    Reading,
    View,
    ViewOfInput,
    has_memory_of_autograd,
    in_memory,
    in_one_memory,
    in_strides,
    place_in_memory,
    read_as,
)
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.torch_private.tensors import is_non_overlapping_and_dense_or_false, storage_of
from tt_torch.torch_private.tracing import has_free_symbols

aten = torch.ops.aten


def views_of_inputs(gm: GraphModule, seen: int) -> dict[int, ViewOfInput]:
    """The views of inputs among the first `seen` outputs, by their positions.

    AOTAutograd makes such views by itself, except the parts that `chunk`, `split` or `unbind` give of a tensor with
    gradients.
    """
    inputs = [n.meta.get("val") for n in gm.graph.find_nodes(op="placeholder")]
    (output,) = gm.graph.find_nodes(op="output")
    made = {i: n for i, n in enumerate(output.args[0][:seen]) if isinstance(n, Node) and n.op != "placeholder"}
    values = {i: value for i, n in made.items() if isinstance(value := n.meta.get("val"), torch.Tensor)}
    return _in_memory_of(inputs, values)


def _in_memory_of(inputs: Sequence[object], values: Mapping[int, torch.Tensor]) -> dict[int, ViewOfInput]:
    """Those of the values that are in the memory of an input."""
    memory = {(storage_of(x), x.dtype): (i, x) for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)}
    views = {}
    for position, value in values.items():
        if found := memory.get((storage_of(value), value.dtype)):
            i, x = found
            if _is_lazy(value) or _is_lazy(x):
                continue
            shape, strides, offset = place_in_memory(value)
            views[position] = ViewOfInput(i, shape, strides, offset - int(x.storage_offset()))
    return views


def return_once(gm: GraphModule, seen: int) -> list[int | View | Reading]:
    """Makes the graph return the memory of outputs that share memory only once. Returns the place of each output.

    Only the first `seen` outputs are given to the user. The others are kept for the backward pass, which checks their
    versions; changes that the user makes to an output must not reach them.
    """
    (output,) = gm.graph.find_nodes(op="output")
    bases = _bases(gm, output.args[0][:seen])
    if not bases:
        return list(range(len(output.args[0])))
    kept: list[Node] = []
    places: list[int | View | Reading] = []
    at: dict[Node, int] = {}
    for i, node in enumerate(output.args[0]):
        base = bases.get(i)
        if base is None or base not in at:
            kept.append(node if base is None else base)
            at[kept[-1]] = len(kept) - 1
        places.append(_place(node, base, at))
    output.args = (tuple(kept),)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return places


def memory_as_in_eager(gm: GraphModule, run: Function) -> Function:
    """`run`, with results that share memory and have strides as in eager PyTorch.

    If eager PyTorch itself runs a graph, its results are there already. The examples of such a graph may be wrong, as
    behind an op that changes the form of an input.
    """
    if isinstance(getattr(run, "__self__", None), GraphModule):
        return run
    return _same_once(gm, _in_strides_of_eager(gm, _share_strided(gm, run)))


def _same_once(gm: GraphModule, run: Function) -> Function:
    """`run`, with one tensor for the results that are one tensor in eager, such as `y` and `y.neg_()`. If Python runs
    the next line, `y.squeeze_()`, it changes the form of both."""
    examples = {i: id(x) for i, x in _results(gm).items()}
    first = {x: i for i, x in reversed(examples.items())}
    again = {i: first[x] for i, x in examples.items() if first[x] != i}
    if not again:
        return run

    def call(*inputs: Argument) -> tuple[Result, ...]:
        results = list(run(*inputs))
        for i, one in again.items():
            results[i] = results[one]
        return tuple(results)

    return call


def _share_strided(gm: GraphModule, run: Function) -> Function:
    """`run`, with results of `unfold`, `as_strided` and `diagonal` as views again; on the device they are copies.

    A result that shares the memory of another output becomes a view of that output. Otherwise its own elements share
    memory as in eager. AOTAutograd makes most of the views that share memory with inputs or have gradients. The parts
    that `chunk`, `split` or `unbind` give are no views for it.
    """
    views, of_inputs = _strided_views(gm), _strided_views_of_inputs(gm)
    if not (views or of_inputs):
        return run
    examples = _results(gm)

    def call(*inputs: Any) -> tuple[Result, ...]:
        results = list(run(*inputs))
        for i, own in of_inputs.items():
            memory = inputs[own.input]
            if storage_of(results[i]) != storage_of(memory) and not has_memory_of_autograd(results[i]):
                results[i] = in_memory(results[i], own.of(memory).detach())
        together: defaultdict[int, list[int]] = defaultdict(list)  # by the first result in the same memory
        for i, view in views.items():
            if view.result in views:
                together[view.result].append(i)
            elif not results[i].requires_grad:
                # A view has its place in eager's memory, and a result of the device may have other strides.
                results[view.result] = in_strides(results[view.result], examples[view.result].stride())
                results[i] = view.of(results).detach()
        for group in together.values():
            rest = [i for i in group if not has_memory_of_autograd(results[i])]
            kept = [i for i in set(group) - set(rest) if place_in_memory(results[i]) == place_in_memory(examples[i])]
            if kept and not any(results[i].requires_grad for i in rest):
                for i in rest:
                    results[i] = _part(kept[0], examples[kept[0]], examples[i]).of(results).detach()
            else:
                _put_together(results, rest, examples)
        return tuple(results)

    return call


def _put_together(results: list[Result], group: Sequence[int], examples: Mapping[int, torch.Tensor]) -> None:
    """Moves the results of a group to one new memory, each to the place of its example."""
    values = [_flipped(results[i].detach(), examples[i]) for i in group]
    places = [(examples[i].stride(), int(examples[i].storage_offset())) for i in group]
    for i, memory in zip(group, in_one_memory(values, places) if group else [], strict=True):
        results[i] = in_memory(results[i], _flipped(memory, examples[i]))


def _flipped(value: torch.Tensor, example: torch.Tensor) -> torch.Tensor:
    """Turns a value into the content of its memory, and back, if `example` is lazily conjugated or negated."""
    value = value.conj() if example.is_conj() else value
    return torch.ops.aten._neg_view(value) if example.is_neg() else value


def _strided_views(gm: GraphModule) -> dict[int, View | Reading]:
    """For results in the memory of a view that is a copy on the device: the result that is all of this memory.

    If no result is all of this memory, it is the first result in it.
    """
    strided = _copied_views(gm)
    if not strided:
        return {}
    values = _results(gm)
    copied = {storage_of(n.meta["example_value"]) for n in strided} - set(map(storage_of, _inputs(gm)))
    whole = {storage_of(v): i for i, v in values.items() if _fills_memory(v)}
    here = {i: v for i, v in values.items() if storage_of(v) in copied and v.numel()}
    first = {storage_of(v): i for i, v in reversed(here.items())}
    users = Counter(map(storage_of, here.values()))
    views = dict[int, View | Reading]()
    for i, v in here.items():
        base = whole.get(storage_of(v))
        shares = base != i
        if base is None:
            shares = users[storage_of(v)] > 1 or not is_non_overlapping_and_dense_or_false(v)
            base = first[storage_of(v)]
        if shares:
            views[i] = _part(base, values[base], v)
    return views


def _strided_views_of_inputs(gm: GraphModule) -> dict[int, ViewOfInput]:
    """Results in the memory of an input, if the graph has a view that is a copy on the device."""
    if not _copied_views(gm):
        return {}
    values = [n.meta.get("example_value") for n in gm.graph.find_nodes(op="placeholder")]
    inputs = [x if isinstance(x, torch.Tensor) and not has_free_symbols(x) else None for x in values]
    given = {id(x) for x in inputs}
    return _in_memory_of(inputs, {i: y for i, y in _results(gm).items() if y.requires_grad and id(y) not in given})


def _copied_views(gm: GraphModule) -> list[Node]:
    """The views of a captured graph that are copies on the device."""
    copied = (aten.unfold, aten.as_strided, aten.diagonal)
    return [n for n in gm.graph.nodes if facts.called(n) in copied and "example_value" in n.meta]


def _in_strides_of_eager(gm: GraphModule, run: Function) -> Function:
    """`run`, with results in the strides that PyTorch's own ops give them.

    A decomposition may give other strides: `log_softmax` of a permuted tensor is dense in eager, and permuted when it
    is computed as a difference. Results that share memory with an input stay as they are: AOTAutograd makes these
    views. Results that share a memory with gaps move to a new memory together, because none of them fills it.
    """
    given = set(map(storage_of, _inputs(gm)))
    examples = {i: v for i, v in _results(gm).items() if v.numel() and storage_of(v) not in given}
    memory = {i: storage_of(v) for i, v in examples.items()}
    users = Counter(memory.values())
    bases = {memory[i]: i for i, v in reversed(examples.items()) if _fills_memory(v) or users[memory[i]] == 1}
    views = {i: _part(bases[m], examples[bases[m]], examples[i]) for i, m in memory.items() if m in bases}
    if not examples:
        return run

    owners = [i for i, view in views.items() if view.result == i]
    together: defaultdict[int, list[int]] = defaultdict(list)
    for i in examples.keys() - views.keys():
        together[memory[i]].append(i)

    def call(*inputs: Argument) -> tuple[Result, ...]:
        made = run(*inputs)
        results = list(made)
        for i in owners:
            results[i] = in_strides(made[i], examples[i].stride())
        for i, view in views.items():
            base = results[view.result]
            apart = storage_of(made[i]) != storage_of(base) and not made[i].requires_grad
            if i != view.result and (base is not made[view.result] or apart):
                results[i] = view.of(results) if made[i].requires_grad else view.of(results).detach()
        for group in together.values():
            if any(made[i].stride() != examples[i].stride() and not made[i].requires_grad for i in group):
                _put_together(results, group, examples)
        return tuple(results)

    return call


def _inputs(gm: GraphModule) -> list[torch.Tensor]:
    """The examples of a captured graph's inputs."""
    values = [n.meta.get("example_value") for n in gm.graph.find_nodes(op="placeholder")]
    return [v for v in values if isinstance(v, torch.Tensor)]


def _results(gm: GraphModule) -> dict[int, torch.Tensor]:
    """The examples of a captured graph's results by their positions, without those that have symbolic sizes."""
    (output,) = gm.graph.find_nodes(op="output")
    values = {i: n.meta.get("example_value") for i, n in enumerate(output.args[0]) if isinstance(n, Node)}
    return {i: v for i, v in values.items() if isinstance(v, torch.Tensor) and not has_free_symbols(v)}


def _place(node: Node, base: Node | None, at: dict[Node, int]) -> int | View | Reading:
    if base is None or node is base:
        return at[node]
    return _part(at[base], base.meta["val"], node.meta["val"])


def _part(result: int, base: torch.Tensor, value: torch.Tensor) -> View | Reading:
    """How `value` is read from the memory of the result that `base` is."""
    return read_as(View(result, *place_in_memory(value)), base, value)


def _is_lazy(value: torch.Tensor) -> bool:
    """Whether a tensor is the lazy conjugate or negative of the values in its memory."""
    return value.is_conj() or value.is_neg()


def _bases(gm: GraphModule, outputs: Sequence[Node]) -> dict[int, Node]:
    """For each output that shares memory with another, by its position: the node whose result is that memory."""
    sharing = defaultdict(list)
    for i, node in enumerate(outputs):
        sharing[_memory(node)].append(i)
    groups = {memory: group for memory, group in sharing.items() if len(group) > 1}
    bases: dict[int, Node] = {}
    for node in gm.graph.nodes if groups else ():
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or (group := groups.pop(_memory(node), None)) is None:
            continue
        if node.op == "call_function" and _fills_memory(value):
            bases |= dict.fromkeys(group, node)
    return bases


def _memory(node: Node) -> int:
    return storage_of(node.meta["val"])


def _fills_memory(value: torch.Tensor) -> bool:
    filled = value.numel() * value.element_size() == value.untyped_storage().nbytes() and not _is_lazy(value)
    return filled and value.storage_offset() == 0 and is_non_overlapping_and_dense_or_false(value)
