"""Batch norm without a bias, and layer norm over several dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import DECOMPOSITIONS, decomposes
from tt_torch.dynamo.types import Argument, Function, Result

aten = torch.ops.aten


@decomposes(aten.native_layer_norm.default)
def layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor] | NotImplementedType:
    """Layer norm over several dimensions. They become one dimension, because the device has an op for layer norm over
    one dimension. Over more elements than float16 can count, it is computed in float32."""
    if x.dtype is torch.float16 and math.prod(shape) > torch.finfo(x.dtype).max:
        scale, shift = (v if v is None else v.to(torch.float32) for v in (weight, bias))
        result, mean, reciprocal = aten.native_layer_norm(x.to(torch.float32), shape, scale, shift, eps)
        return result.to(x.dtype), mean.to(x.dtype), reciprocal.to(x.dtype)
    if len(shape) == 1:
        return NotImplemented
    elements = x.flatten(-len(shape))
    flat = (v if v is None else v.flatten() for v in (weight, bias))
    result, *rest = aten.native_layer_norm(elements, elements.shape[-1:], *flat, eps)
    ones = [1] * len(shape)
    return result.view(x.shape), *(v.reshape(*x.shape[: -len(shape)], *ones) for v in rest)


def _plus_zero(function: Function) -> Function:
    """Gives a bias of zeros to a batch norm without a bias. Eager PyTorch computes `x * scale + shift`, which is never
    -0.0 without a bias. PyTorch's formula would give -0.0 for x = -0.0 and a mean of zero."""

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
