"""Normalization over several dimensions of narrow floats, which are rounded once, at the end."""

from __future__ import annotations

from collections.abc import Sequence
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import NARROW, decomposes

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
