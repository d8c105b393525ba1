"""Batch norm, and layer norm over several dimensions of narrow floats, which are rounded once, at the end."""

from __future__ import annotations

from collections.abc import Sequence
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import DECOMPOSITIONS, NARROW, decomposes
from tt_torch.dynamo.types import Argument, Function, Result

aten = torch.ops.aten


@decomposes(aten.native_layer_norm.default)
def layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor] | NotImplementedType:
    """Layer norm over several dimensions. Over one dimension it is an op of the device."""
    if x.dtype not in NARROW or len(shape) == 1:
        return NotImplemented
    wide = (v if v is None else v.to(torch.float32) for v in (weight, bias))
    result, *rest = aten.native_layer_norm(x.to(torch.float32), shape, *wide, eps)
    mixed = weight is not None and weight.dtype != x.dtype
    return result.to(x.dtype), *(v if mixed else v.to(x.dtype) for v in rest)


def _plus_zero(function: Function) -> Function:
    """Batch norm with a bias of zeros, if it has none: eager PyTorch computes `x * scale + shift`, which is never -0.0
    without a bias, and PyTorch's formula gives -0.0 for x = -0.0 and a mean of zero."""

    def batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Argument) -> Result:
        return function(x, weight, x.new_zeros(x.shape[1]) if bias is None else bias, *rest)

    return batch_norm


for _op in (
    aten._native_batch_norm_legit.default,
    aten._native_batch_norm_legit.no_stats,
    aten._native_batch_norm_legit_functional.default,
    aten.native_batch_norm.default,
    aten._batch_norm_with_update_functional.default,
):
    decomposes(_op)(_plus_zero(DECOMPOSITIONS[_op]))
