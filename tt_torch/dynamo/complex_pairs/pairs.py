"""Tracing a graph again with pairs of real tensors in the place of complex ones.

The graph is traced again with each complex tensor as a `Pair`. An op without a rule here keeps its complex form,
between a join and a split of pairs, and so becomes an op of the host partition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._guards import detect_fake_mode
from torch._subclasses import FakeTensorMode
from torch.fx import GraphModule, Interpreter
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta
from torch.utils._pytree import tree_any, tree_map

from tt_torch.dynamo.decompositions.registry import device_of
from tt_torch.dynamo.passes.rewriting import fake_inputs

aten = torch.ops.aten
REAL = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}
COMPLEX = {real: kind for kind, real in REAL.items()}


@dataclass(frozen=True)
class Pair:
    """Real and imaginary part, of one shape and dtype."""

    re: Tensor
    im: Tensor

    @property
    def dtype(self) -> torch.dtype:
        return COMPLEX[self.re.dtype]

    def each(self, function: Callable[[Tensor], Tensor]) -> Pair:
        return Pair(function(self.re), function(self.im))


def split(x: Tensor) -> Pair:
    return unstacked(torch.view_as_real(x))


def join(x: Any) -> Any:
    return torch.complex(x.re, x.im) if isinstance(x, Pair) else x


def stacked(x: Pair) -> Tensor:
    """As at the border of a program: a last dimension of two."""
    return torch.stack([x.re, x.im], -1)


def unstacked(x: Tensor) -> Pair:
    return Pair(x.select(-1, 0), x.select(-1, 1))


def pair(x: Any, like: Pair) -> Pair:
    """A real tensor or any scalar as a pair of the dtype of `like`."""
    if isinstance(x, Pair):
        return x
    if not isinstance(x, Tensor):
        number = complex(x)
        real = torch.full((), number.real, dtype=like.re.dtype)
        return Pair(real, torch.full((), number.imag, dtype=like.re.dtype))
    x = x.to(like.re.dtype)
    return Pair(x, torch.zeros_like(x))


def is_complex(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_complex()


def has_complex(gm: GraphModule) -> bool:
    return any(tree_any(is_complex, n.meta.get("val")) for n in gm.graph.nodes)


def to_pairs(gm: GraphModule, decompositions: dict[Any, Callable[..., Any]]) -> GraphModule:
    """The graph on real tensors. Complex inputs and outputs become real ones with a last dimension of two."""
    fakes = fake_inputs(gm)
    inputs = [_border(fake) for fake in fakes]

    def run(*values: Tensor) -> list[Tensor]:
        given = [
            Pair(v.select(-1, 0), v.select(-1, 1)) if is_complex(f) else v for v, f in zip(values, fakes, strict=True)
        ]
        results = _Pairs(gm).run(*given)
        return [stacked(r) if isinstance(r, Pair) else r for r in results]

    mode = detect_fake_mode(fakes) or FakeTensorMode()
    with preserve_node_meta(), mode, device_of(fakes):
        return make_fx(run, decomposition_table=decompositions)(*inputs)


def _border(fake: Tensor) -> Tensor:
    if not is_complex(fake):
        return fake
    with fake.fake_mode:
        return torch.empty((*fake.shape, 2), dtype=REAL[fake.dtype], device=fake.device)


class _Pairs(Interpreter):
    """Runs a graph in which complex tensors are pairs."""

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if rule := RULES.get(target):
            result = rule(*args, **kwargs)
            if result is not NotImplemented:
                return result
        if tree_any(lambda v: isinstance(v, Pair), (args, kwargs)):
            if target in EACH:
                return _each(target, args, kwargs)
            args, kwargs = tree_map(join, (args, kwargs), is_leaf=lambda v: isinstance(v, Pair))
        result = super().call_function(target, args, kwargs)
        return tree_map(lambda v: split(v) if is_complex(v) else v, result)

    def get_attr(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        value = super().get_attr(target, args, kwargs)
        return split(value) if is_complex(value) else value


# Ops that move elements, or are linear with real coefficients: each part by itself.
EACH = {
    getattr(getattr(aten, name), overload)
    for name in """view _unsafe_view reshape permute t transpose unsqueeze squeeze expand slice select clone alias
    detach cat stack split split_with_sizes unbind flip roll index index_select gather constant_pad_nd repeat
    as_strided diagonal slice_scatter select_scatter sum mean cumsum neg unfold tril triu where movedim
    _reshape_alias lift_fresh_copy contiguous index_put copy""".split()
    for overload in getattr(aten, name).overloads()
}


def _each(target: Any, args: Any, kwargs: Any) -> Any:
    """The op on all real parts, and on all imaginary ones; what is no pair is the same for both, and scalars that
    would be values (of a padding, say) have no imaginary part."""
    is_pair = lambda v: isinstance(v, Pair)  # noqa: E731
    parts = []
    for part in ("re", "im"):
        given = tree_map(lambda v: getattr(v, part) if is_pair(v) else v, (args, kwargs), is_leaf=is_pair)  # noqa: B023
        parts.append(target(*given[0], **given[1]))
    if isinstance(parts[0], Tensor):
        return Pair(*parts)
    return [Pair(re, im) for re, im in zip(*parts, strict=True)]


RULES: dict[Any, Callable[..., Any]] = {}


def rule(*targets: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        RULES.update(dict.fromkeys(targets, function))
        return function

    return register
