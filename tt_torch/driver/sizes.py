"""Programs for the sizes of calls: one per set of sizes, and per value of a number that a graph reads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import torch
from torch.fx import GraphModule, Node

from tt_torch import user_code
from tt_torch.driver import variants
from tt_torch.driver.variants import Variants
from tt_torch.dynamo.in_place import written_by
from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.torch_private.aot import TracingContext, tracing
from tt_torch.torch_private.tensors import FakeTensorMode, storage_of

MANY_SHAPES = (
    f"a graph was compiled for more than {variants.MOST} shapes, so each new program replaces an old one; "
    "with CompilerConfig(buckets=...) a dimension is padded to a few sizes"
)

# The number of programs after which a graph whose sizes only grow gets a warning.
GROWING = 3
GROWING_SHAPES = (
    f"a graph was compiled {GROWING} times for sizes that only grow, and each larger size will be a further program. "
    'In generate() of Transformers, cache_implementation="static" and max_length keep one size; elsewhere '
    "CompilerConfig(buckets=...) pads a dimension to a few sizes: docs/shapes.md"
)


def once_per_size(
    gm: GraphModule,
    numbers: Sequence[int],
    compile_for: Callable[[GraphModule, Sequence[object]], Function],
    mode: Callable[[], FakeTensorMode] = FakeTensorMode,
) -> Function:
    """A callable that compiles the graph once per set of concrete sizes, at the first call with that set.

    `numbers` are positions of scalar inputs whose values the graph reads as Python numbers, such as a position or an
    amount of padding. The graph is compiled once per value of these, too. `Variants` says how many programs are kept.
    Each program is captured in a new `mode`.
    """
    programs = Variants(MANY_SHAPES)
    sizes: list[list[int]] = []  # of all programs, in the order in which they were compiled

    def run(*inputs: Argument) -> Result:
        values = {i: inputs[i].item() for i in numbers}
        shapes = [(tuple(v.shape), v.stride(), v.dtype) if isinstance(v, torch.Tensor) else v for v in inputs]
        key = (*shapes, *map(repr, values.values()))  # 0.0 and -0.0 are equal, and NaN is not equal to itself

        def compiled() -> Function:
            with tracing(TracingContext(mode())):
                program = compile_for(_with_values(gm, values), inputs)
            sizes.append(_sizes(key))
            if len(sizes) == GROWING and _only_grow(sizes):
                user_code.warn_once("growing shapes", UserWarning(GROWING_SHAPES))
            return program

        return programs.get(key, compiled)(*inputs)

    return run


def _sizes(key: Sequence[object]) -> list[int]:
    """The sizes of all tensors of a call, from the key of its program."""
    return [size for part in key if isinstance(part, tuple) for size in part[0]]


def _only_grow(calls: Sequence[Sequence[int]]) -> bool:
    """Whether each call has a size that is larger than in the call before, and none that is smaller."""
    pairs = [list(zip(a, b, strict=True)) for a, b in itertools.pairwise(calls)]
    return all(all(a <= b for a, b in pair) and any(a < b for a, b in pair) for pair in pairs)


def numbers_read(gm: GraphModule, inputs: Sequence[object]) -> list[int]:
    """Positions of the scalar tensors among the inputs whose values the graph may read as Python numbers.

    These are all integers that it uses, and the floats that Dynamo passes as tensors and reads with `item`. A tensor to
    which it writes, or whose memory it returns, must stay an input.
    """
    kept, placeholders = _kept(gm), gm.graph.find_nodes(op="placeholder")
    read = (i for i, (node, v) in enumerate(zip(placeholders, inputs, strict=True)) if node.users and _read(node, v))
    return [i for i in read if _memory(placeholders[i]) not in kept]


def _read(node: Node, value: object) -> bool:
    if not isinstance(value, torch.Tensor) or value.dim() or value.is_complex():
        return False
    if any(user.target is torch.isin for user in node.users):  # PyTorch cannot capture it with a constant scalar
        return False
    return not value.is_floating_point() or any(user.target == "item" for user in node.users)


def _kept(gm: GraphModule) -> set[int]:
    """The memory to which the graph writes, and the memory of its results."""
    kept = {_memory(node) for node in gm.graph.find_nodes(op="output")[0].all_input_nodes}
    kept |= {_memory(into) for node in gm.graph.nodes for into in written_by(node)}
    return kept - {0}


def _memory(node: Node) -> int:
    """A number for the memory of a node's example; 0 if it has none."""
    value = node.meta.get("example_value")
    return storage_of(value) if isinstance(value, torch.Tensor) else 0


def _with_values(gm: GraphModule, values: Mapping[int, int | float | bool]) -> GraphModule:
    """A copy of the graph that uses constants instead of some inputs. The inputs stay, but nothing reads them."""
    if not values:
        return gm
    gm = copied(gm)
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    with gm.graph.inserting_after(placeholders[-1]):
        for i, v in values.items():
            dtype = placeholders[i].meta["example_value"].dtype
            constant = gm.graph.call_function(torch.tensor, (v,), {"dtype": dtype})
            placeholders[i].replace_all_uses_with(constant)
    gm.recompile()
    return gm
