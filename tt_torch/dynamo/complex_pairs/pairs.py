"""Traces a graph again, with each complex tensor as a `Pair` of real tensors.

An op without a rule here keeps its complex form: its operands are joined before it, and its results are split after it.
Such an op runs on the host.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.traceback import preserve_node_meta

from tt_torch.dynamo import facts
from tt_torch.dynamo.decompositions.registry import device_of
from tt_torch.dynamo.facts import ByOp, Fact
from tt_torch.dynamo.passes.rewriting import fake_inputs
from tt_torch.dynamo.types import Argument, Arguments, Decompositions, Function, Result, Scalar, Target
from tt_torch.torch_private.ops import schema
from tt_torch.torch_private.tensors import FakeTensorMode, detect_fake_mode, without_modes
from tt_torch.torch_private.tracing import make_fx
from tt_torch.torch_private.trees import tree_any, tree_map

aten = torch.ops.aten
REAL = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}
COMPLEX = {real: kind for kind, real in REAL.items()}
PARTS = ("re", "im")


@dataclass(frozen=True)
class Pair:
    """The real and the imaginary part, with the same shape and dtype."""

    re: Tensor
    im: Tensor

    @property
    def dtype(self) -> torch.dtype:
        return COMPLEX[self.re.dtype]

    def each(self, function: Callable[[Tensor], Tensor]) -> Pair:
        return Pair(function(self.re), function(self.im))


Operand: TypeAlias = Pair | Tensor | Scalar  # of a rule


def split(x: Tensor) -> Pair:
    """A complex tensor as a pair."""
    return unstacked(torch.view_as_real(x))


def join(x: Argument) -> Argument:
    """A pair as a complex tensor; any other value unchanged."""
    return torch.complex(x.re, x.im) if isinstance(x, Pair) else x


def stacked(x: Pair) -> Tensor:
    """The form at the border of a program: both parts in a last dimension of size 2."""
    return torch.stack([x.re, x.im], -1)


def unstacked(x: Tensor) -> Pair:
    """The reverse of `stacked`: a pair from a tensor with a last dimension of size 2."""
    return Pair(x.select(-1, 0), x.select(-1, 1))


def pair(x: Operand, like: Pair) -> Pair:
    """A real tensor, or any scalar, as a pair. Integers and scalars get the dtype of `like`. Tensors of floats keep
    their own dtype: complex64 and float64 give complex128."""
    if isinstance(x, Pair):
        return x
    if not isinstance(x, Tensor):
        number = complex(x)
        real = torch.full((), number.real, dtype=like.re.dtype)
        return Pair(real, torch.full((), number.imag, dtype=like.re.dtype))
    x = x if x.is_floating_point() else x.to(like.re.dtype)
    return Pair(x, torch.zeros_like(x))


def is_complex(value: object) -> bool:
    return isinstance(value, Tensor) and value.is_complex()


def has_complex(gm: GraphModule) -> bool:
    """Whether complex numbers are in a graph, or in a graph that its ops call."""
    graphs = [m.graph for m in gm.modules() if isinstance(m, GraphModule)]
    return any(tree_any(is_complex, n.meta.get("val")) for graph in graphs for n in graph.nodes)


def run_in_pairs(gm: GraphModule, values: Sequence[Pair | Tensor]) -> Sequence[Pair | Tensor]:
    """The results of a graph, of inputs whose complex ones are pairs."""
    results = _Pairs(gm).run(*values)
    return results if isinstance(results, (list, tuple)) else [results]


def to_pairs(gm: GraphModule, decompositions: Decompositions) -> GraphModule:
    """The graph on real tensors. Complex inputs and outputs become real ones with a last dimension of size 2."""
    fakes = fake_inputs(gm)
    inputs = [_border(fake) for fake in fakes]

    def run(*values: Tensor) -> list[Tensor]:
        given = [
            Pair(v.select(-1, 0), v.select(-1, 1)) if is_complex(f) else v for v, f in zip(values, fakes, strict=True)
        ]
        results = run_in_pairs(gm, given)
        return [stacked(r) if isinstance(r, Pair) else r for r in results]

    mode = detect_fake_mode(fakes) or FakeTensorMode()
    with preserve_node_meta(), mode, device_of(fakes):
        traced = make_fx(run, decomposition_table=decompositions)(*inputs)
    return traced


def _border(fake: Argument) -> Tensor:
    if not is_complex(fake):
        return fake
    with fake.fake_mode:
        return torch.empty((*fake.shape, 2), dtype=REAL[fake.dtype], device=fake.device)


class _Pairs(Interpreter):
    """Runs a graph in which complex tensors are pairs."""

    def run_node(self, n: Node) -> Result:
        self._parts = PARTS if tree_any(is_complex, n.meta.get("val")) else PARTS[:1]
        return super().run_node(n)

    def call_function(self, target: Function, args: tuple[Argument, ...], kwargs: Arguments) -> Result:
        if rule := RULES.get(target):
            result = rule(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if target is not operator.getitem and tree_any(_is_pair, (args, kwargs)):
            if facts.of(target) & (Fact.KEEPS | Fact.LINEAR):
                return _each(target, args, kwargs, self._parts)
            args, kwargs = tree_map(join, (args, kwargs))
        result = super().call_function(target, args, kwargs)
        return tree_map(lambda v: split(v) if is_complex(v) else v, result)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: Arguments) -> Tensor | Pair:
        value = super().get_attr(target, args, kwargs)
        if not is_complex(value):
            return value
        with without_modes():  # the parts are constants of the new graph, not computed in it
            parts = split(value).each(torch.clone)
        return parts.each(aten.lift_fresh_copy)


def _is_pair(value: object) -> bool:
    return isinstance(value, Pair)


def _each(target: Function, args: Sequence[Argument], kwargs: Arguments, parts: Sequence[str]) -> Result:
    """Applies an op that keeps elements, or is linear, to each part; only to the real parts if its result is real.

    `torch.where(mask, z, x)` of complex z and real x is `where(mask, z.re, x)` and `where(mask, z.im, 0)`.
    """
    values = facts.value_arguments(target) if Fact.KEEPS in facts.of(target) else []
    names = [argument.name for argument in schema(target).arguments]
    found = []
    for part in parts:
        given = [_part(v, part, name in values) for name, v in zip(names, args, strict=False)]
        found.append(target(*given, **{name: _part(v, part, name in values) for name, v in kwargs.items()}))
    if len(found) == 1:
        return found[0]
    return Pair(*found) if isinstance(found[0], Tensor) else [Pair(re, im) for re, im in zip(*found, strict=True)]


def _part(argument: Argument, part: str, is_value: bool) -> Argument:
    """An argument for the op on the real or on the imaginary parts. Sizes, indices and masks are the same for both. The
    imaginary part of real elements is zero."""

    def leaf(v: Argument) -> Argument:
        if isinstance(v, Pair):
            return getattr(v, part)
        if isinstance(v, torch.dtype):
            return REAL.get(v, v)
        if isinstance(v, Tensor) and is_value:
            return v if part == "re" else torch.zeros_like(v)
        if isinstance(v, (int, float, complex)) and is_value:
            return complex(v).real if part == "re" else complex(v).imag
        return v

    return tree_map(leaf, argument)


# The rules, by overload or packet. A rule takes the op's arguments, with pairs; it returns NotImplemented if it does
# not apply.
RULES = ByOp[Function]()
