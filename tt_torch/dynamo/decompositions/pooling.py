"""Average pooling and its gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import NotImplementedType

import torch
import torch.nn.functional as F
from torch import Tensor

from tt_torch.dynamo.decompositions.per_dimension import apply_sums
from tt_torch.dynamo.decompositions.registry import decomposes

aten = torch.ops.aten


def _pair(value: Sequence[int], default: Sequence[int] = (0, 0)) -> tuple[int, int]:
    value = tuple(value) or tuple(default)
    return (value[0], value[-1])


def overhang(size: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    """How far the last window of ceil mode reaches beyond the padded input. The window must start inside of it."""
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    steps = math.ceil(span / stride)
    if steps * stride >= size + padding:
        steps -= 1
    return max(0, steps * stride - span)


@decomposes(aten.avg_pool2d.default)
def avg_pool2d(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor | NotImplementedType:
    """Average pooling. If divisors differ between windows, they come from pooling ones. Ceil mode becomes padding."""
    if not x.is_floating_point():
        return NotImplemented
    kernel, padding = _pair(kernel), _pair(padding)
    stride = _pair(stride, kernel)
    over = [overhang(x.shape[d - 2], kernel[d], stride[d], padding[d]) if ceil_mode else 0 for d in (0, 1)]
    if not (any(over) or divisor_override or ceil_mode):
        return NotImplemented
    if any(missing >= size for missing, size in zip(over, x.shape[-2:], strict=True)):  # mostly padding
        window = (kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return apply_sums(x, _averages(x.shape[-2:], *window), kernel)
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


# --- averages as sums of the elements that a matrix weighs


def windows_of(
    size: int, kernel: int, stride: int, padding: int, ceil_mode: bool, dilation: int = 1
) -> tuple[Tensor, Tensor]:
    """The begin and the end of each window. Positions in the padding before the first element are negative."""
    over = overhang(size, kernel, stride, padding, dilation) if ceil_mode else 0
    count = (size + 2 * padding + over - dilation * (kernel - 1) - 1) // stride + 1
    begin = torch.arange(count) * stride - padding
    return begin, begin + dilation * (kernel - 1) + 1


def adaptive_windows(size: int, count: int) -> tuple[Tensor, Tensor]:
    place = torch.arange(count)
    return place * size // count, ((place + 1) * size + count - 1) // count


def _mean_of(windows: tuple[Tensor, Tensor], size: int, counted: Tensor | int) -> Tensor:
    """A matrix (windows, size): at each element of a window, 1 divided by the number of elements that count."""
    begin, end = (v.unsqueeze(1) for v in windows)
    place = torch.arange(size)
    held = torch.where((place >= begin) & (place < end), 1.0, 0.0)
    return held / counted.unsqueeze(1) if isinstance(counted, Tensor) else held / counted


def _averages(
    sizes: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> list[Tensor]:
    """The matrices of an average pooling. A given divisor is a factor of the first one."""
    matrices = []
    for size, k, s, p in zip(sizes, kernel, stride, padding, strict=True):
        windows = windows_of(size, k, s, p, ceil_mode)
        low, high = (-p, size + p) if count_include_pad else (0, size)
        counted = 1 if divisor_override else windows[1].clamp(max=high) - windows[0].clamp(min=low)
        matrices.append(_mean_of(windows, size, counted))
    return [matrices[0] / divisor_override, *matrices[1:]] if divisor_override else matrices


def each(value: Sequence[int], dims: int, default: Sequence[int] = ()) -> list[int]:
    """One value per dimension."""
    value = list(value) or list(default)
    return value * dims if len(value) == 1 else value


@decomposes(aten.avg_pool3d.default)
def avg_pool3d(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor | NotImplementedType:
    if not x.is_floating_point():
        return NotImplemented
    kernel = each(kernel, 3)
    window = (kernel, each(stride, 3, kernel), each(padding, 3), ceil_mode, count_include_pad, divisor_override)
    return apply_sums(x, _averages(x.shape[-3:], *window), kernel)


@decomposes(aten.avg_pool2d_backward.default, aten.avg_pool3d_backward.default)
def avg_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    dims = len(kernel)
    stride = each(stride, dims, kernel)
    matrices = _averages(x.shape[-dims:], kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
    overlaps = [math.ceil(k / s) for k, s in zip(kernel, stride, strict=True)]
    return apply_sums(grad, [m.t() for m in matrices], overlaps)


def _adaptive_averages(sizes: Sequence[int], counts: Sequence[int]) -> list[Tensor]:
    windows = [adaptive_windows(size, count) for size, count in zip(sizes, counts, strict=True)]
    return [_mean_of((a, b), size, b - a) for (a, b), size in zip(windows, sizes, strict=True)]


@decomposes(aten._adaptive_avg_pool3d.default)
def adaptive_avg_pool3d(x: Tensor, counts: Sequence[int]) -> Tensor | NotImplementedType:
    if not x.is_floating_point():
        return NotImplemented
    longest = [math.ceil(size / count) + 1 for size, count in zip(x.shape[-3:], counts, strict=True)]
    return apply_sums(x, _adaptive_averages(x.shape[-3:], counts), longest)


@decomposes(aten._adaptive_avg_pool2d_backward.default)
def adaptive_avg_pool2d_backward(grad: Tensor, x: Tensor) -> Tensor:
    return _adaptive_backward(grad, x.shape[-2:], grad.shape[-2:])


@decomposes(aten._adaptive_avg_pool3d_backward.default)
def adaptive_avg_pool3d_backward(grad: Tensor, x: Tensor) -> Tensor:
    return _adaptive_backward(grad, x.shape[-3:], grad.shape[-3:])


def _adaptive_backward(grad: Tensor, sizes: Sequence[int], counts: Sequence[int]) -> Tensor:
    matrices = [m.t() for m in _adaptive_averages(sizes, counts)]
    return apply_sums(grad, matrices, [_overlaps(n, count) for n, count in zip(sizes, counts, strict=True)])


def _overlaps(size: int, count: int) -> int:
    """The largest number of adaptive windows that have an element in common."""
    ends = [((i + 1) * size + count - 1) // count for i in range(count)]
    return max(sum(i * size // count <= place < end for i, end in enumerate(ends)) for place in range(size))


@decomposes(aten.col2im.default)
def col2im(
    x: Tensor,
    size: Sequence[int],
    kernel: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor | NotImplementedType:
    """Adds every element of every window at its position, along the height and then along the width."""
    if not x.is_floating_point():
        return NotImplemented
    matrices, counts = [], []
    for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True):
        counts.append((n + 2 * p - d * (k - 1) - 1) // s + 1)
        place = torch.arange(k).unsqueeze(1) * d + torch.arange(counts[-1]) * s - p
        matrices.append((place.reshape(1, -1) == torch.arange(n).unsqueeze(1)).to(torch.float32))
    columns = x.reshape([*x.shape[:-2], -1, *kernel, *counts]).transpose(-3, -2)
    return apply_sums(columns.flatten(-2).flatten(-3, -2), matrices, kernel)
