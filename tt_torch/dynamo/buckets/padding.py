"""Runs a symbolic graph on padded sizes, so that the padding does not change results.

Each dimension of a tensor has tags: the padded symbols in its size, and for each symbol the number of elements in one
step. For example, a dimension of size batch * length has the tag {length: 1} if length is padded, and {batch: length}
if batch is. Elements in the padding may have any value. Ops that work on each position alone keep them there. For other
ops they are replaced by a neutral value: in a sum over a length of 5 that is padded to 8, the last three elements
become 0.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node

from tt_torch.dynamo import facts
from tt_torch.dynamo.buckets.registry import RULES, Tags
from tt_torch.dynamo.passes.rewriting import arguments, user_line
from tt_torch.dynamo.types import Argument, Result
from tt_torch.errors import BucketError
from tt_torch.torch_private.ops import OpOverload, schema

# By size, the symbols of a dimension that has several symbols. None if two dimensions of the same size differ.
Layouts = dict[sympy.Expr, dict[sympy.Symbol, int] | None]
NO_RULE = "it has no rule that keeps padding out"


SYMBOLIC = (torch.SymInt, torch.SymFloat)


class Padding(Interpreter):
    """Runs the graph for the given sizes. Afterwards, `tags` has the tags of each node."""

    def __init__(
        self, gm: GraphModule, sizes: Mapping[sympy.Symbol, int], padded: Sequence[sympy.Symbol], layouts: Layouts
    ) -> None:
        super().__init__(gm)
        self._layouts = layouts
        self.extra_traceback = False  # our errors name the op and the line
        self.sizes, self.padded = dict(sizes), list(padded)
        self._fixed = {s: sympy.Integer(size) for s, size in sizes.items() if s not in self.padded}
        self.lengths: dict[sympy.Symbol, torch.Tensor] = {}
        self.tags: dict[Node, Any] = {}  # Tags, or a list of them for several results

    def run_node(self, n: Node) -> Result:
        if n.op == "output":
            return super().run_node(n)
        if n.op != "call_function" or not self._concerned(n):
            result = super().run_node(n)
            if isinstance(result, torch.Tensor):
                self.tags[n] = self._of_input(n) if n.op == "placeholder" else ({},) * result.dim()
            return result
        with self._set_current_node(n):
            return self._run_rule(n)

    def _concerned(self, n: Node) -> bool:
        """Whether an op reads padding or a padded size."""
        reads_size = any(_expression(i).free_symbols & set(self.padded) for i in n.all_input_nodes)
        return reads_size or any(any(self.tags.get(i, ())) for i in n.all_input_nodes) or any(self.of_shape(n))

    def _run_rule(self, n: Node) -> Result:
        if n.target is operator.getitem:
            self.tags[n] = self.tags[n.args[0]][n.args[1]]
            return super().run_node(n)
        if not isinstance(n.target, OpOverload) or isinstance(n.meta.get("val"), (*SYMBOLIC, int)):
            return super().run_node(n)  # arithmetic on sizes
        rule = RULES.get(n.target)
        if rule is None:
            raise self.refused(n, NO_RULE)
        nodes = arguments(n)
        given = {s.name: self._argument(n, s, nodes[s.name]) for s in schema(n.target).arguments}
        result, self.tags[n] = rule(self, n, given)
        return result

    def _argument(self, n: Node, schema: torch.Argument, given: Argument) -> Argument:
        """The value of an argument. Arithmetic on a size gets the real size, which is known only in the call."""
        expr = _expression(given).xreplace(self._fixed)
        is_size = schema.name == "end" or facts.kind(schema.type) is torch.IntType  # arange's end has the type Scalar
        if is_size or not expr.free_symbols:
            return self.map_nodes_to_values(given, n)
        takes_tensor = facts.kind(schema.type) is torch.TensorType or n.target is torch.ops.aten.scalar_tensor.default
        takes_tensor |= schema.name == "other" and "Tensor" in n.target.overloadpacket.overloads()
        if not takes_tensor or not expr.is_polynomial():
            raise self.refused(n, "it computes with the size itself")
        symbols = sorted(expr.free_symbols, key=str)
        return sympy.lambdify(symbols, expr, [])(*(self.lengths[s] for s in symbols))

    def refused(self, n: Node, reason: str) -> BucketError:
        """The error for an op whose results padding would change. The caller raises it."""
        return BucketError(str(n.target), user_line(n), reason)

    def of_shape(self, n: Node) -> Tags:
        """The tags of a new tensor or of an input: a dimension is padded if its size has a padded symbol."""
        x = n.meta.get("val")
        if not isinstance(x, torch.Tensor):
            return ()
        found = []
        for size in x.shape:
            expr = size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)
            found.append({s: 1 for s in self.padded if s in expr.free_symbols})
        return tuple(found)

    def _of_input(self, n: Node) -> Tags:
        """The tags of an input. In a backward graph, a dimension with several symbols has the tags of the forward
        graph."""
        found = []
        for dim, (size, symbols) in enumerate(zip(n.meta["val"].shape, self.of_shape(n), strict=True)):
            if symbols and not isinstance(size.node.expr, sympy.Symbol):
                known = self._layouts.get(size.node.expr.xreplace(self._fixed))
                if known is None:
                    raise BucketError(
                        n.meta.get("source", n.name), f"dimension {dim} of an input", f"its size is {size}"
                    )
                symbols = known
            found.append(symbols)
        return tuple(found)

    def note_layouts(self) -> None:
        """Stores the tags of this graph's dimensions for a backward graph."""
        for node, tags in self.tags.items():
            x = node.meta.get("val")
            dims: Iterable[Any] = zip(x.shape, tags, strict=True) if isinstance(x, torch.Tensor) else ()
            for size, symbols in dims:
                if symbols and not isinstance(size.node.expr, sympy.Symbol):
                    expr = size.node.expr.xreplace(self._fixed)
                    self._layouts[expr] = symbols if self._layouts.get(expr, symbols) == symbols else None

    # --- for rules

    def shape(self, n: Node) -> list[int]:
        """The padded sizes of a tensor."""
        return [evaluated(size, self.sizes) for size in n.meta["val"].shape]

    def of(self, argument: Argument) -> Tags:
        """The tags of a node."""
        return self.tags[argument]

    def masked(self, x: torch.Tensor, tags: Tags, dims: Sequence[int], neutral: float) -> torch.Tensor:
        """`x` with a neutral value in the padding of these dimensions."""
        for dim in dims:
            for symbol, inner in tags[dim].items():
                positions = torch.arange(x.shape[dim]) // inner % self.sizes[symbol]
                valid = (positions < self.lengths[symbol]).reshape([-1] + [1] * (x.dim() - 1 - dim % x.dim()))
                x = torch.where(valid, x, torch.full((), neutral, dtype=x.dtype))
        return x

    def count(self, shape: Sequence[int], tags: Tags, dims: Sequence[int]) -> Tensor | int:
        """The number of real elements in these dimensions together."""
        fixed = math.prod(shape[d] for d in dims)
        count: Tensor | int = 1
        for symbol in [s for d in dims for s in tags[d]]:
            fixed, count = fixed // self.sizes[symbol], count * self.lengths[symbol]
        return fixed * count


def _expression(argument: Argument) -> sympy.Expr:
    """The value that a node computes from sizes, such as `x.shape[1] / 3`; 0 for an argument that is no such node."""
    value = argument.meta.get("val") if isinstance(argument, Node) else None
    return sympy.sympify(value.node.expr) if isinstance(value, SYMBOLIC) else sympy.Integer(0)


def evaluated(value: torch.SymInt | int, sizes: Mapping[sympy.Symbol, int]) -> int:
    """A size as a number, whether it is symbolic or not."""
    return int(value.node.expr.xreplace(sizes)) if isinstance(value, torch.SymInt) else value


def pad(
    x: torch.Tensor, tags: Tags, padded: Mapping[sympy.Symbol, int], real: Mapping[sympy.Symbol, int]
) -> torch.Tensor:
    """Adds zeros after the real elements of each dimension. A tensor that fills its bucket is returned unchanged."""
    for dim, symbols in enumerate(tags):
        # The innermost symbol first: its padding is part of the steps of the others.
        for symbol, inner in sorted(symbols.items(), key=lambda item: item[1]):
            if real[symbol] == padded[symbol]:
                continue
            shape = list(x.shape)
            parts = x.reshape([*shape[:dim], -1, real[symbol], inner, *shape[dim + 1 :]])
            wider = parts.new_zeros([*parts.shape[: dim + 1], padded[symbol], *parts.shape[dim + 2 :]])
            wider.narrow(dim + 1, 0, real[symbol]).copy_(parts)
            x = wider.reshape([*shape[:dim], -1, *shape[dim + 1 :]])
    return x


def crop(x: Tensor, tags: Tags, padded: Mapping[sympy.Symbol, int], real: Mapping[sympy.Symbol, int]) -> torch.Tensor:
    """Removes the padding of each dimension."""
    for dim, symbols in enumerate(tags):
        # The outermost symbol first: cropping it leaves the steps of the others as they are.
        for symbol, inner in sorted(symbols.items(), key=lambda item: -item[1]):
            if real[symbol] == padded[symbol]:
                continue
            shape = list(x.shape)
            parts = x.reshape([*shape[:dim], -1, padded[symbol], inner, *shape[dim + 1 :]])
            kept = parts.narrow(dim + 1, 0, real[symbol])
            x = kept.reshape([*shape[:dim], -1, *shape[dim + 1 :]])
    return x
