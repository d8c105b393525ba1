"""Programs for inputs that overlap in memory.

If a graph writes to one of several inputs that overlap, AOTAutograd makes one input of them. It takes their places in
memory from the examples, and sets no guards on these places. A later call with `x[0]` instead of `x[1]` beside `x`
would write to another place. A later call whose inputs overlap for the first time would not see its own writes.
AOTAutograd also looks for results that are such inputs. It expects them at the offset of a tensor that the program
returns, but on the device this tensor has memory of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule, Node

from tt_torch.driver import variants
from tt_torch.driver.partition import wholly_on_host
from tt_torch.driver.variants import Variants
from tt_torch.dynamo import facts
from tt_torch.dynamo.examples import VALUES_DECIDE, with_examples
from tt_torch.dynamo.facts import Fact, called
from tt_torch.dynamo.interface import source
from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.dynamo.plain_views import window_of
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.errors import ArgumentError, MeshError
from tt_torch.torch_private.aot import TracingContext, tracing, writes_to_inputs
from tt_torch.torch_private.tensors import FakeTensorMode, storage_of

Build: TypeAlias = Callable[[GraphModule, Sequence[object]], Function]
MANY_OVERLAPS = (
    f"a graph that writes to inputs, or counts from the begin of their memory, had these in more than {variants.MOST} "
    "sets of places, so each new program replaces an old one; pass copies of the inputs"
)
NOT_PLAIN = (
    "the graph writes to inputs that overlap in memory, and that need gradients, have several dtypes, have strides as "
    "of unfold(), or decide about a shape by their values"
)


@dataclass(frozen=True)
class Group:
    """Inputs that share a memory, in which two of them overlap: their positions, and their offsets in elements."""

    positions: tuple[int, ...]
    offsets: tuple[int, ...]


def once_per_overlap(gm: GraphModule, examples: Sequence[object], build: Build, fallback: str) -> Function:
    """The function that `build` makes of a captured graph. `Variants` says how many such functions are kept.

    If the graph writes to inputs, one function is made for each way in which the inputs overlap. If the graph counts
    places from the begin of a memory, one function is made for each set of offsets of the inputs.

    Inputs that overlap and need gradients, have several dtypes, or have strides that plain views do not make, are left
    to eager PyTorch. If `fallback` is "error", they raise ArgumentError.
    """
    context = TracingContext.get()
    context.fw_metadata = None  # of another graph, or of none
    first = build(gm, examples)
    metadata = context.fw_metadata
    writes = metadata is not None and writes_to_inputs(metadata)
    counts = any(map(_counts_from_memory, gm.graph.nodes))
    if not writes and not counts:
        return first
    programs = Variants(MANY_OVERLAPS)

    def places(inputs: Sequence[object]) -> tuple[tuple[Group, ...], tuple[int, ...]]:
        return overlapping(inputs) if writes else (), _offsets(inputs) if counts else ()

    groups, _ = here = places(examples)
    if not groups:
        programs[here] = first

    def run(*inputs: Argument) -> Result:
        groups, _ = here = places(inputs)
        return programs.get(here, lambda: _program(gm, inputs, groups, build, fallback))(*inputs)

    return run


def eager_if_overlapping(
    gm: GraphModule,
    examples: Sequence[Any],
    build: Callable[[Sequence[Any]], Function],
    fallback: str,
    memory: Callable[[Any], object] = lambda x: x,
) -> Function:
    """The function that `build` makes of a captured graph for several chips.

    If the graph writes to inputs, eager PyTorch runs it in a call in which two inputs overlap. If `fallback` is
    "error", such a call raises MeshError. `memory` gives the part of an input that the first chip has.
    """
    context, names = TracingContext.get(), [source(node) for node in gm.graph.find_nodes(op="placeholder")]
    context.fw_metadata = None  # of another graph, or of none
    together = {i for group in overlapping([*map(memory, examples)]) for i in group.positions}
    apart = [_copy(x) if i in together else x for i, x in enumerate(examples)]  # AOTAutograd has no rule for chips
    run, eager = build(apart), list[Function]()
    metadata = context.fw_metadata
    if metadata is None or not writes_to_inputs(metadata):
        return run

    def call(*inputs: Argument) -> Result:
        found = overlapping([*map(memory, inputs)])
        if not found:
            return run(*inputs)
        those = ", ".join(names[i] for i in found[0].positions)
        what = f"a graph for several chips writes to its inputs, of which these overlap in memory: {those}"
        if fallback == "error":
            raise MeshError(f"{what}; pass copies, such as x.clone(), or make the views in the graph")
        if not eager:
            eager.append(wholly_on_host(gm, what))
        return eager[0](*inputs)

    return call


def _copy(x: torch.Tensor) -> torch.Tensor:
    return x.detach().clone().requires_grad_(x.requires_grad)


def _counts_from_memory(node: Node) -> bool:
    """Whether an op is given a place that counts from the begin of its operand's memory, not from the operand."""
    return Fact.STRIDES in facts.of(called(node)) and (len(node.args) > 3 or "storage_offset" in node.kwargs)


def _offsets(inputs: Sequence[object]) -> tuple[int, ...]:
    return tuple(int(x.storage_offset()) for x in inputs if isinstance(x, torch.Tensor) and x.layout is torch.strided)


def overlapping(inputs: Sequence[object]) -> tuple[Group, ...]:
    """The inputs that share a memory with others, if two of them overlap there."""
    together: defaultdict[int, list[tuple[int, torch.Tensor]]] = defaultdict(list)
    for i, x in enumerate(inputs):
        if isinstance(x, torch.Tensor) and x.layout is torch.strided:
            together[storage_of(x)].append((i, x))
    groups = []
    for found in together.values():
        positions, tensors = zip(*found, strict=True)
        if len(tensors) > 1 and _overlap(tensors):
            groups.append(Group(positions, tuple(int(x.storage_offset()) for x in tensors)))
    return tuple(groups)


def _overlap(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether the spans of two of them in their common memory have a byte in common."""
    spans = sorted(_span(x) for x in tensors if x.numel())
    return any(end > begin for (_, end), (begin, _) in pairwise(spans))


def _span(x: torch.Tensor) -> tuple[int, int]:
    """The first byte of a tensor in its memory, and the byte after its last byte."""
    begin, end = _elements(x)
    return begin * x.element_size(), end * x.element_size()


def _elements(x: torch.Tensor) -> tuple[int, int]:
    """The first element of a tensor in its memory, and the element after its last element."""
    begin = int(x.storage_offset())
    return begin, begin + 1 + int(sum((n - 1) * stride for n, stride in zip(x.shape, x.stride(), strict=True)))


def _memory(tensors: Sequence[torch.Tensor]) -> tuple[int, int]:
    """The offset and the size of the part of memory that has the windows of all these tensors, in elements."""
    found = [window for x in tensors if (window := window_of(x)) and window.size]
    begin = min(window.begin for window in found)
    return begin, max(window.begin + window.size for window in found) - begin


def _is_plain(tensors: Sequence[torch.Tensor]) -> bool:
    lazy = any(x.requires_grad or x.is_conj() or x.is_neg() for x in tensors)
    return not lazy and len({x.dtype for x in tensors}) == 1 and all(map(window_of, tensors))


def _program(
    gm: GraphModule, examples: Sequence[Argument], groups: Sequence[Group], build: Build, fallback: str
) -> Function:
    if all(_is_plain([examples[i] for i in group.positions]) for group in groups):
        with tracing(TracingContext(FakeTensorMode())), suppress(*VALUES_DECIDE):
            return _in_one_memory(gm, examples, groups, build)
    if fallback == "error":
        raise ArgumentError(f"{NOT_PLAIN}; pass copies, or let eager PyTorch compute it with fallback='host'")
    return wholly_on_host(gm, NOT_PLAIN)


def _in_one_memory(gm: GraphModule, examples: Sequence[Argument], groups: Sequence[Group], build: Build) -> Function:
    """A program that takes one input for each group, with plain views of it instead of the inputs.

    The new input takes the place of the group's first input. Tensors without elements take the places of the others.
    """
    joined, gm = _joined(groups, examples), copied(gm)
    placeholders, parts = gm.graph.find_nodes(op="placeholder"), set[Node]()
    for group in groups:
        begin, _ = _memory([examples[i] for i in group.positions])
        whole = placeholders[group.positions[0]]
        for i in group.positions:
            last, view, window = placeholders[-1], whole, window_of(examples[i])
            assert window
            first = window.begin - begin if window.size else 0
            for method, *args in (("narrow", 0, first, window.size), *window.steps):
                with gm.graph.inserting_after(last):
                    last = view = gm.graph.call_method(method, (view, *args))
                if view.args[0] is whole:
                    parts.add(view)
            view.meta = dict(placeholders[i].meta)
            placeholders[i].replace_all_uses_with(view, delete_user_cb=lambda user: user not in parts)
    gm.recompile()
    returned = _returned(gm)
    run = build(with_examples(gm, joined), joined)

    def call(*inputs: Argument) -> tuple[Result, ...]:
        results = list(run(*_joined(groups, inputs)))
        for i, position in returned.items():
            results[i] = inputs[position]
        return tuple(results)

    return call


def _returned(gm: GraphModule) -> dict[int, int]:
    """The results that are inputs: their positions, and those of the inputs. A graph that breaks before `x.t_()` must
    return `x` itself, and not another view of its memory, because the line changes the form of one tensor."""
    given = {id(node.meta["example_value"]): i for i, node in enumerate(gm.graph.find_nodes(op="placeholder"))}
    (results,) = gm.graph.output_node().args
    examples = [value.meta.get("example_value") if isinstance(value, Node) else None for value in results]
    return {i: given[id(x)] for i, x in enumerate(examples) if isinstance(x, torch.Tensor) and id(x) in given}


def _joined(groups: Sequence[Group], inputs: Sequence[Argument]) -> list[Argument]:
    """The inputs of the program for a call with `inputs`."""
    taken = list(inputs)
    for group in groups:
        whole, *rest = group.positions
        begin, size = _memory([inputs[i] for i in group.positions])
        taken[whole] = inputs[whole].as_strided((size,), (1,), begin)
        for i in rest:
            taken[i] = inputs[i].new_empty(0)
    return taken
