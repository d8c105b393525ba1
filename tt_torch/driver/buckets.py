"""Runs a graph on sizes that are rounded up: one program per combination of bucket sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.fx.traceback import preserve_node_meta

from tt_torch.dynamo.buckets import round_up, symbol_of
from tt_torch.dynamo.buckets.padding import Layouts, Padding, crop, evaluated, pad
from tt_torch.dynamo.calls import with_strides
from tt_torch.dynamo.types import Argument, Decompositions, Function, Result
from tt_torch.torch_private.tensors import FakeTensorMode
from tt_torch.torch_private.tracing import make_fx

CompileFor = Callable[[GraphModule, Sequence[str]], Callable[[list[Tensor]], Sequence[Tensor]]]


class BucketedProgram:
    """A graph with symbolic sizes, which is compiled once per combination of bucket sizes."""

    def __init__(
        self,
        gm: GraphModule,
        roles: Sequence[str],
        buckets: Mapping[sympy.Symbol, tuple[int, ...]],
        decompositions: Decompositions,
        compile_for: CompileFor,
        layouts: Layouts,
    ) -> None:
        """Fills `layouts` with the symbols of dimensions that have several. A backward graph reads `layouts`."""
        self._gm, self._buckets, self._decompositions = gm, buckets, decompositions
        self._compile_for, self._layouts = compile_for, layouts
        self._inputs = [n for n in gm.graph.nodes if n.op == "placeholder"]
        self._outputs = next(n for n in gm.graph.nodes if n.op == "output").args[0]
        self._roles = [role for role, n in zip(roles, self._inputs, strict=True) if _is_tensor(n)]
        self._programs: dict[tuple[int, ...], tuple[Function, Padding]] = {}
        # compiled now, so that errors are raised at compile time
        self._program({s: int(hint) for s, hint in _hints(self._inputs).items()})

    def __call__(self, inputs: list[Argument]) -> list[Result]:
        sizes: dict[sympy.Symbol, int] = {}
        for node, given in zip(self._inputs, inputs, strict=True):
            sizes |= _bound(node, given)
        tensors = [v for v in inputs if isinstance(v, torch.Tensor)]
        inputs.clear()
        program, padding = self._program(sizes)
        tags = [padding.tags[n] for n in self._inputs if _is_tensor(n)]
        padded = [pad(x, dims, padding.sizes, sizes) for x, dims in zip(tensors, tags, strict=True)]
        lengths = [torch.tensor(sizes[s], dtype=torch.int32) for s in self._buckets if s in sizes]
        results = iter(program([*padded, *lengths]))
        return [self._result(out, results, sizes, padding) for out in self._outputs]

    def _result(
        self, out: Result, results: Iterator[Tensor], sizes: Mapping[sympy.Symbol, int], padding: Padding
    ) -> Result:
        if not isinstance(out, Node):
            return out
        if not _is_tensor(out):
            return evaluated(out.meta["val"], sizes)
        return _placed(crop(next(results), padding.tags[out], padding.sizes, sizes), out.meta["val"], sizes)

    def _program(self, sizes: Mapping[sympy.Symbol, int]) -> tuple[Function, Padding]:
        rounded = {s: round_up(n, self._buckets[s]) if s in self._buckets else n for s, n in sizes.items()}
        key = tuple(rounded.values())
        if key not in self._programs:
            padding = Padding(self._gm, rounded, [s for s in self._buckets if s in sizes], self._layouts)
            graph = self._trace(padding)
            padding.note_layouts()
            self._programs[key] = self._compile_for(graph, [*self._roles, *["input"] * len(padding.padded)]), padding
        return self._programs[key]

    def _trace(self, padding: Padding) -> GraphModule:
        """Traces the graph for concrete bucket sizes. Its inputs are the tensors, and then the real lengths."""
        mode = FakeTensorMode()
        values = [n.meta["val"] for n in self._inputs]
        with mode:
            tensors = [
                torch.empty([evaluated(d, padding.sizes) for d in v.shape], dtype=v.dtype)
                for v in values
                if isinstance(v, torch.Tensor)
            ]
            lengths = [torch.empty((), dtype=torch.int32) for _ in padding.padded]

        def run(*given: torch.Tensor) -> tuple[Tensor, ...]:
            remaining = iter(given)
            arguments = [
                next(remaining) if isinstance(v, torch.Tensor) else evaluated(v, padding.sizes) for v in values
            ]
            padding.lengths = dict(zip(padding.padded, remaining, strict=True))
            results = padding.run(*arguments)
            return tuple(v for v, out in zip(results, self._outputs, strict=True) if _is_tensor(out))

        with mode, torch.no_grad(), preserve_node_meta():
            return make_fx(run, decomposition_table=dict(self._decompositions))(*tensors, *lengths)


def _is_tensor(node: object) -> bool:
    return isinstance(node, Node) and isinstance(node.meta.get("val"), torch.Tensor)


def _hints(inputs: Sequence[Node]) -> dict[sympy.Symbol, int]:
    """The sizes for which the graph was captured."""
    values = [n.meta["val"] for n in inputs]
    sizes: list[Any] = [s for v in values for s in (v.shape if isinstance(v, torch.Tensor) else [v])]
    return {symbol: s.node.hint for s in sizes if (symbol := symbol_of(s))}


def _bound(node: Node, given: Argument) -> dict[sympy.Symbol, int]:
    """The symbols whose values follow from an input, with these values."""
    value = node.meta["val"]
    pairs = zip(value.shape, given.shape, strict=True) if isinstance(value, torch.Tensor) else [(value, given)]
    return {symbol: int(n) for size, n in pairs if (symbol := symbol_of(size))}


def _placed(x: torch.Tensor, like: torch.Tensor, sizes: Mapping[sympy.Symbol, int]) -> torch.Tensor:
    """The result with the strides and the offset of the graph, from which AOTAutograd makes views of inputs."""
    strides = [evaluated(s, sizes) for s in like.stride()]
    offset = evaluated(like.storage_offset(), sizes)
    if (list(x.stride()), x.storage_offset()) == (strides, offset):
        return x
    return with_strides(x, strides, offset)
