"""Average pooling and its gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from types import NotImplementedType
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import DECOMPOSITIONS, decomposes
from tt_torch.dynamo.decompositions.window_sums import Windows, overhang, scattered, sums, sums_of_chosen

aten = torch.ops.aten


def _pair(value: Sequence[int], default: Sequence[int] = (0, 0)) -> tuple[int, int]:
    value = tuple(value) or tuple(default)
    return (value[0], value[-1])


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
    """Average pooling. If windows have different divisors, these come from pooled ones. Ceil mode becomes padding."""
    if not x.is_floating_point():
        return NotImplemented
    kernel, padding = _pair(kernel), _pair(padding)
    stride = _pair(stride, kernel)
    if x.dtype is torch.float16 and kernel[0] * kernel[1] > torch.finfo(x.dtype).max:  # the divisor would be infinite
        wide = x.to(torch.float32)
        return aten.avg_pool2d(wide, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override).to(
            x.dtype
        )
    over = [overhang(x.shape[d - 2], kernel[d], stride[d], padding[d]) if ceil_mode else 0 for d in (0, 1)]
    if not (any(over) or divisor_override or ceil_mode):
        # A window of one element is no op of the device, but eager PyTorch adds it to 0.0, which makes 0.0 of -0.0.
        return (x + 0.0)[..., :: stride[0], :: stride[1]] if kernel == (1, 1) else NotImplemented
    if any(missing >= size for missing, size in zip(over, x.shape[-2:], strict=True)):  # mostly padding
        return _average(x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)
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


# --- averages as sums of windows, divided by the number of elements that count


def adaptive_windows(size: int, count: int) -> tuple[Tensor, Tensor]:
    """The begin and the end of each window."""
    place = torch.arange(count)
    return place * size // count, ((place + 1) * size + count - 1) // count


def _in_float32(x: Tensor) -> Tensor:
    """The terms of sums: in float32 at least, and without -0.0, because eager PyTorch adds to 0.0."""
    return x.to(torch.promote_types(x.dtype, torch.float32)) + 0.0


def _outer(counts: Sequence[Tensor | int]) -> Tensor | int:
    """The products of one count per dimension: a tensor with a dimension for each count, or a number if all counts are
    numbers."""
    if all(isinstance(count, int) for count in counts):
        return math.prod(cast(Sequence[int], counts))
    return reduce(
        lambda product, count: product.unsqueeze(-1) * count, (torch.as_tensor(c).reshape(-1) for c in counts)
    )


def _divisor(
    sizes: Sequence[int], windows: Sequence[Windows], count_include_pad: bool, divisor_override: int | None
) -> Tensor | int:
    """The divisor of the sums: one number for all windows, or one number for each window."""
    if divisor_override:
        return divisor_override

    def counted(size: int, window: Windows) -> Tensor | int:
        low, high = (-window.padding, size + window.padding) if count_include_pad else (0, size)
        if low == -window.padding and window.reach - window.padding <= high:
            return window.kernel
        return (window.begin + window.kernel).clamp(max=high) - window.begin.clamp(min=low)

    return _outer([counted(size, window) for size, window in zip(sizes, windows, strict=True)])


def _average(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """The averages of windows of the last dimensions. The kernel has one size for each of these dimensions."""
    sizes, result = x.shape[-len(kernel) :], _in_float32(x)
    windows = [Windows.over(*w, ceil_mode) for w in zip(sizes, kernel, stride, padding, strict=True)]
    for dim, window in enumerate(windows, x.dim() - len(kernel)):
        result = sums(result, dim, window)
    return (result / _divisor(sizes, windows, count_include_pad, divisor_override)).to(x.dtype)


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
    window = (kernel, each(stride, 3, kernel), each(padding, 3))
    return _average(x, *window, ceil_mode, count_include_pad, divisor_override)


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
    sizes = x.shape[-dims:]
    each_window = zip(sizes, kernel, each(stride, dims, kernel), each(padding, dims), strict=True)
    windows = [Windows.over(*w, ceil_mode) for w in each_window]
    result = _in_float32(grad) / _divisor(sizes, windows, count_include_pad, divisor_override)
    for dim, (size, window) in enumerate(zip(sizes, windows, strict=True), grad.dim() - dims):
        result = scattered([result] * window.kernel, dim, size, window)
    return result.to(grad.dtype)


def _equal_windows(size: int, count: int) -> Windows | None:
    """The windows of an adaptive pooling if they do not overlap."""
    return Windows(count, size // count, size // count) if size % count == 0 else None


def _adaptive_counts(sizes: Sequence[int], counts: Sequence[int]) -> Tensor | int:
    """How many elements are in each window."""

    def counted(size: int, count: int) -> Tensor | int:
        begin, end = adaptive_windows(size, count)
        return end - begin if size % count else size // count

    return _outer([counted(size, count) for size, count in zip(sizes, counts, strict=True)])


def _in_window(size: int, count: int) -> Tensor:
    """A matrix (count, size): which elements are in which adaptive window."""
    begin, end = (v.unsqueeze(1) for v in adaptive_windows(size, count))
    return (torch.arange(size) >= begin) & (torch.arange(size) < end)


_OF_PYTORCH = DECOMPOSITIONS[aten._adaptive_avg_pool2d.default]


@decomposes(aten._adaptive_avg_pool2d.default)
def adaptive_avg_pool2d(x: Tensor, counts: Sequence[int]) -> Tensor:
    """PyTorch's decomposition. Windows of several sizes are sums of elements there, and some have one element, which
    eager PyTorch adds to 0.0, so that it is never -0.0."""
    uneven = any(count and size % count for size, count in zip(x.shape[-2:], counts, strict=True))
    return _OF_PYTORCH(x + 0.0 if uneven and x.is_floating_point() else x, counts)


@decomposes(aten._adaptive_avg_pool3d.default)
def adaptive_avg_pool3d(x: Tensor, counts: Sequence[int]) -> Tensor | NotImplementedType:
    if not x.is_floating_point():
        return NotImplemented
    result, sizes = _in_float32(x), x.shape[-3:]
    for dim, (size, count) in enumerate(zip(sizes, counts, strict=True), x.dim() - 3):
        windows = _equal_windows(size, count)
        most = min(size, math.ceil(size / count) + 1)
        result = sums(result, dim, windows) if windows else sums_of_chosen(result, dim, _in_window(size, count), most)
    return (result / _adaptive_counts(sizes, counts)).to(x.dtype)


@decomposes(aten._adaptive_avg_pool2d_backward.default)
def adaptive_avg_pool2d_backward(grad: Tensor, x: Tensor) -> Tensor:
    return _adaptive_backward(grad, x.shape[-2:], grad.shape[-2:])


@decomposes(aten._adaptive_avg_pool3d_backward.default)
def adaptive_avg_pool3d_backward(grad: Tensor, x: Tensor) -> Tensor:
    return _adaptive_backward(grad, x.shape[-3:], grad.shape[-3:])


def _adaptive_backward(grad: Tensor, sizes: Sequence[int], counts: Sequence[int]) -> Tensor:
    result = _in_float32(grad) / _adaptive_counts(sizes, counts)
    for dim, (size, count) in enumerate(zip(sizes, counts, strict=True), grad.dim() - len(sizes)):
        if windows := _equal_windows(size, count):
            result = scattered([result] * windows.kernel, dim, size, windows)
        else:
            result = sums_of_chosen(result, dim, _in_window(size, count).t(), _overlaps(size, count))
    return result.to(grad.dtype)


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
    windows = [Windows.over(*w[:4], False, w[4]) for w in zip(size, kernel, stride, padding, dilation, strict=True)]
    result = _in_float32(x).reshape([*x.shape[:-2], -1, *kernel, *(w.number for w in windows)])
    channels = result.dim() - 2 * len(size)
    for i, (n, window) in enumerate(zip(size, windows, strict=True)):
        # The elements of a window are in dimension `channels` at every step, because the last step removed its own.
        result = scattered(result.unbind(channels), result.dim() - 1 - len(size) + i, n, window)
    return result.to(x.dtype)
