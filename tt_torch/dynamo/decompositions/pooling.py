"""Pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import decomposes

aten = torch.ops.aten


def _pair(value: Sequence[int], default: Sequence[int] = (0, 0)) -> tuple[int, int]:
    value = tuple(value) or tuple(default)
    return (value[0], value[-1])


def _overhang(size: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    """How far the last window of ceil mode reaches over the padded input; the window must start inside of it."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    steps = math.ceil(span / stride)
    if steps * stride >= size + padding:
        steps -= 1
    return max(0, steps * stride - span)


@decomposes(aten.max_pool2d_with_indices.default)
def max_pool2d_with_indices(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    ceil_mode: bool = False,
) -> Any:
    """torch-mlir ignores ceil mode and does not take images without a batch."""
    kernel, padding, dilation = _pair(kernel), _pair(padding), _pair(dilation)
    stride = _pair(stride, kernel)
    if x.dim() == 3:
        values, indices = aten.max_pool2d_with_indices(x.unsqueeze(0), kernel, stride, padding, dilation, ceil_mode)
        return values.squeeze(0), indices.squeeze(0)
    if not ceil_mode:
        return NotImplemented
    over = [_overhang(x.shape[d - 2], kernel[d], stride[d], padding[d], dilation[d]) for d in (0, 1)]
    if not any(over):
        return aten.max_pool2d_with_indices(x, kernel, stride, padding, dilation, False)
    (top, left), (bottom, right), width = padding, over, x.shape[-1]
    x = F.pad(x, (left, left + right, top, top + bottom), value=-math.inf)
    values, indices = aten.max_pool2d_with_indices(x, kernel, stride, (0, 0), dilation, False)
    row, column = indices // x.shape[-1] - top, indices % x.shape[-1] - left
    return values, row * width + column


@decomposes(aten.avg_pool2d.default)
def avg_pool2d(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """Divisors that differ from window to window come from pooling ones; ceil mode is padding."""
    kernel, padding = _pair(kernel), _pair(padding)
    stride = _pair(stride, kernel)
    over = [_overhang(x.shape[d - 2], kernel[d], stride[d], padding[d]) if ceil_mode else 0 for d in (0, 1)]
    if not (any(over) or divisor_override or ceil_mode):
        return NotImplemented
    (top, left), (bottom, right) = padding, over
    ring, rest = (left, left, top, top), (0, right, 0, bottom)

    def window_means(image: Tensor) -> Tensor:
        return aten.avg_pool2d(F.pad(image, rest), kernel, stride, (0, 0), False, True, None)

    means = window_means(F.pad(x, ring))
    if divisor_override:
        return means * (kernel[0] * kernel[1] / divisor_override)
    ones = torch.ones(x.shape[-2:], dtype=x.dtype)[None, None]
    counted = F.pad(ones, ring, value=1.0 if count_include_pad else 0.0)
    return means / window_means(counted).reshape(means.shape[-2:])
