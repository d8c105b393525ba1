"""Ops on lists of tensors, which optimizers and gradient clipping use: each becomes ops on single tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import aten, decomposes
from tt_torch.dynamo.types import Argument, Function
from tt_torch.torch_private.ops import OpOverload, schema

PREFIX = "_foreach_"
# Ops whose function for a single tensor has other arguments.
SINGLE: dict[str, Function] = {
    "addcdiv": lambda x, a, b, value=1: _with_factor(torch.addcdiv, x, a, b, value),
    "addcmul": lambda x, a, b, value=1: _with_factor(torch.addcmul, x, a, b, value),
    "copy": lambda x, source, non_blocking=False: source.to(x.dtype).expand(x.shape),
    "maximum": torch.clamp_min,
    "minimum": torch.clamp_max,
    "norm": lambda x, ord=2, dtype=None: torch.linalg.vector_norm(x, ord, dtype=dtype),
    "powsum": lambda x, ord=2, dtype=None: torch.sum(x.abs() ** ord, dtype=dtype),
    "zero": torch.zeros_like,
}


def _with_factor(op: Function, x: Tensor, a: Tensor, b: Tensor, value: Argument) -> Tensor:
    """`x` with `value` times the product or quotient of `a` and `b`. `value` may be an element of `scalars`."""
    return op(x, a * value, b) if isinstance(value, Tensor) else op(x, a, b, value=value)


def _for_each(op: OpOverload) -> Callable[..., list[Tensor]]:
    """Applies the op to the elements of all lists together; other arguments are the same for all tensors. If `scalars`
    is a tensor, it has one element for each tensor of the lists."""
    name = schema(op).name.partition(PREFIX)[2]
    single = SINGLE.get(name) or getattr(torch, name)
    listed = {a.name for a in schema(op).arguments if isinstance(a.type, torch.ListType)} | {"scalars"}
    names = [a.name for a in schema(op).arguments]

    def run(*args: Argument, **kwargs: Argument) -> list[Tensor]:
        columns = [(args[i], name in listed) for i, name in enumerate(names[: len(args)])]
        count = next(len(values) for values, is_list in columns if is_list)
        return [single(*(v[i] if is_list else v for v, is_list in columns), **kwargs) for i in range(count)]

    return run


def _overloads() -> Sequence[OpOverload]:
    packets = [getattr(aten, name) for name in sorted({n.rstrip("_") for n in dir(torch) if n.startswith(PREFIX)})]
    found = [getattr(packet, name) for packet in packets for name in packet.overloads()]
    return [op for op in found if not schema(op).is_mutable]


for op in _overloads():
    decomposes(op)(_for_each(op))
