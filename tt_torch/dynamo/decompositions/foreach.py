"""Ops on lists of tensors, which optimizers and gradient clipping use: the op on single tensors, for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import aten, decomposes

PREFIX = "_foreach_"
# Those whose arguments for a single tensor are not those of the function of the same name.
SINGLE: dict[str, Callable[..., Any]] = {
    "addcdiv": lambda x, a, b, value=1: x + a / b * value,
    "addcmul": lambda x, a, b, value=1: x + a * b * value,
    "copy": lambda x, source, non_blocking=False: source.to(x.dtype).expand(x.shape),
    "maximum": torch.clamp_min,
    "minimum": torch.clamp_max,
    "norm": lambda x, ord=2, dtype=None: torch.linalg.vector_norm(x, ord, dtype=dtype),
    "powsum": lambda x, ord=2, dtype=None: torch.sum(x.abs() ** ord, dtype=dtype),
    "zero": torch.zeros_like,
}


def _for_each(op: torch._ops.OpOverload) -> Callable[..., list[Tensor]]:
    """Lists are walked together; other arguments are the same for all tensors. A tensor of `scalars` has a value
    for each."""
    single = SINGLE.get(op._schema.name.partition(PREFIX)[2]) or getattr(torch, op._schema.name.partition(PREFIX)[2])
    listed = {a.name for a in op._schema.arguments if isinstance(a.type, torch.ListType)} | {"scalars"}
    names = [a.name for a in op._schema.arguments]

    def run(*args: Any, **kwargs: Any) -> list[Tensor]:
        columns = [(args[i], name in listed) for i, name in enumerate(names[: len(args)])]
        count = next(len(values) for values, is_list in columns if is_list)
        return [single(*(v[i] if is_list else v for v, is_list in columns), **kwargs) for i in range(count)]

    return run


def _overloads() -> Sequence[torch._ops.OpOverload]:
    names = {n.removeprefix("aten::") for n in torch._C._dispatch_get_all_op_names() if n.startswith(f"aten::{PREFIX}")}
    split = [n.partition(".") for n in sorted(names)]
    found = [getattr(getattr(aten, name), overload or "default") for name, _, overload in split]
    return [op for op in found if not op._schema.is_mutable]


for op in _overloads():
    decomposes(op)(_for_each(op))
