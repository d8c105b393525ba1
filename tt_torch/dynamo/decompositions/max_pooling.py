"""Max pooling and adaptive max pooling with the positions of the maxima; unpooling and gradients, which use positions.

A position counts the elements of an image or volume.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import NotImplementedType

import torch
import torch.nn.functional as F
from torch import Tensor

from tt_torch.dynamo.decompositions.pooling import adaptive_windows, each
from tt_torch.dynamo.decompositions.registry import decomposes
from tt_torch.dynamo.decompositions.window_sums import Windows, overhang
from tt_torch.dynamo.types import Argument

aten = torch.ops.aten

Ints = Sequence[int]


def _strides(sizes: Ints) -> list[int]:
    return [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]


def _max_of(x: Tensor, places: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Maxima of windows and their positions. For each dimension, `places` has a tensor (windows, elements) with the
    places of the elements of each window. The elements are looked up, so that a window is a row."""
    there = _flat(places, x.shape[-len(places) :])
    windows = x.flatten(-len(places)).index_select(-1, there.flatten()).unflatten(-1, list(there.shape))
    values, which = windows.max(-1)
    if x.is_floating_point():  # of several NaN, eager takes the last one
        count = torch.arange(there.shape[1])
        which = torch.where(values.isnan(), torch.where(windows.isnan(), count, 0).amax(-1), which)
    row = torch.arange(there.shape[0]) * there.shape[1]
    shape = [p.shape[0] for p in places]
    return values.unflatten(-1, shape), there.flatten()[which + row].unflatten(-1, shape)


def _flat(places: Sequence[Tensor], sizes: Ints) -> Tensor:
    """(windows, elements): the places of each window's elements among all of an image."""
    dims, total = len(places), torch.zeros((), dtype=torch.int64)
    for d, (rows, stride) in enumerate(zip(places, _strides(sizes), strict=True)):
        window, element = rows.shape
        spread = [1] * 2 * dims
        spread[d], spread[dims + d] = window, element
        total = total + (rows * stride).reshape(spread)
    return total.reshape(math.prod(total.shape[:dims]), -1)


def _max_of_sliding(
    x: Tensor, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool
) -> tuple[Tensor, Tensor]:
    """If a window reaches beyond the elements, its first or last element that exists is taken again: with a size of 4,
    the places 3, 4, 5 become 3, 3, 3."""
    places = []
    for size, k, s, p, d in zip(x.shape[-len(kernel) :], kernel, stride, padding, dilation, strict=True):
        windows = Windows.over(size, k, s, p, ceil_mode, d)
        place = windows.begin.unsqueeze(1) + torch.arange(k) * d
        place = torch.where(place < 0, place % d, place)
        places.append(torch.where(place >= size, size - 1 - (size - 1 - place) % d, place))
    return _max_of(x, places)


@decomposes(aten.max_pool2d_with_indices.default)
def max_pool2d_with_indices(
    x: Tensor, kernel: Ints, stride: Ints = (), padding: Ints = (0,), dilation: Ints = (1,), ceil_mode: bool = False
) -> tuple[Tensor, Tensor] | NotImplementedType:
    """torch-mlir ignores ceil mode, needs a stride, and takes neither images without a batch nor integers."""
    implied, kernel = not stride, each(kernel, 2)
    padding, dilation, stride = each(padding, 2), each(dilation, 2), each(stride, 2, kernel)
    if not x.is_floating_point():
        return _max_of_sliding(x, kernel, stride, padding, dilation, ceil_mode)
    if x.dim() == 3:
        values, indices = aten.max_pool2d_with_indices(x.unsqueeze(0), kernel, stride, padding, dilation, ceil_mode)
        return values.squeeze(0), indices.squeeze(0)
    if not ceil_mode and not implied:
        return NotImplemented
    over = [overhang(x.shape[d - 2], kernel[d], stride[d], padding[d], dilation[d]) for d in (0, 1)]
    if not ceil_mode or not any(over):
        return aten.max_pool2d_with_indices(x, kernel, stride, padding, dilation, False)
    (top, left), (bottom, right), width = padding, over, x.shape[-1]
    x = F.pad(x, (left, left + right, top, top + bottom), value=-math.inf)
    values, indices = aten.max_pool2d_with_indices(x, kernel, stride, (0, 0), dilation, False)
    row, column = indices // x.shape[-1] - top, indices % x.shape[-1] - left
    return values, row * width + column


@decomposes(aten.max_pool3d_with_indices.default)
def max_pool3d_with_indices(
    x: Tensor, kernel: Ints, stride: Ints = (), padding: Ints = (0,), dilation: Ints = (1,), ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """Positions need a look-up. The values of floats come from two poolings instead: first over planes, then over the
    elements that are behind each other."""
    kernel, padding, dilation = (each(v, 3) for v in (kernel, padding, dilation))
    stride = each(stride, 3, kernel)
    window = (kernel, stride, padding, dilation)
    values, positions = _max_of_sliding(x, *window, ceil_mode)
    if x.is_floating_point():
        *_batch, depth, height, width = x.shape
        planes = x.reshape(-1, depth, height, width)
        planes = aten.max_pool2d_with_indices(planes, *(v[1:] for v in window), ceil_mode)[0]
        column = [[v[0], one] for v, one in zip(window, (1, 1, 0, 1), strict=True)]
        values = aten.max_pool2d_with_indices(planes.flatten(-2), *column, ceil_mode)[0].reshape(values.shape)
    return values, positions


@decomposes(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def adaptive_max_pool(x: Tensor, counts: Ints) -> tuple[Tensor, Tensor]:
    """All windows get the length of the longest one, by repeating the last element of the others."""
    places = []
    for size, count in zip(x.shape[-len(counts) :], counts, strict=True):
        begin, end = adaptive_windows(size, count)
        longest = max(-(-(i + 1) * size // count) - i * size // count for i in range(count))
        places.append(torch.minimum(begin.unsqueeze(1) + torch.arange(longest), end.unsqueeze(1) - 1))
    return _max_of(x, places)


def _put(source: Tensor, positions: Tensor, shape: Ints, dims: int, add: bool) -> Tensor:
    """Zeros of `shape`, with the elements of `source` at their positions among its last dimensions."""
    zeros = source.new_zeros([*shape[:-dims], math.prod(shape[-dims:])])
    source, positions = source.flatten(-dims), positions.flatten(-dims)
    return (zeros.scatter_add if add else zeros.scatter)(-1, positions, source).reshape(list(shape))


@decomposes(aten.max_pool2d_with_indices_backward.default, aten.max_pool3d_with_indices_backward.default)
def max_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    positions: Tensor,
) -> Tensor:
    return _put(grad, positions, x.shape, len(kernel), add=True)


@decomposes(aten.adaptive_max_pool2d_backward.default)
def adaptive_max_pool2d_backward(grad: Tensor, x: Tensor, positions: Tensor) -> Tensor:
    return _put(grad, positions, x.shape, 2, add=True)


@decomposes(aten.adaptive_max_pool3d_backward.default)
def adaptive_max_pool3d_backward(grad: Tensor, x: Tensor, positions: Tensor) -> Tensor:
    return _put(grad, positions, x.shape, 3, add=True)


@decomposes(aten.max_unpool2d.default, aten.max_unpool3d.default)
def max_unpool(x: Tensor, positions: Tensor, sizes: Ints, *_: Argument) -> Tensor:
    dims = len(sizes)
    return _put(x, positions, [*x.shape[:-dims], *sizes], dims, add=False)


# --- fractional pooling


def _fractional_begins(size: int, kernel: int, count: int, sample: Tensor) -> Tensor:
    """The begins of windows, int64 (images, channels, count). Steps are fractions. The last window ends at the last
    element of the dimension."""
    last = torch.full_like(sample, size - kernel, dtype=torch.int64).unsqueeze(-1)
    if count == 1:
        return last
    step = torch.full((), size - kernel, dtype=sample.dtype) / (count - 1)
    place = torch.arange(count - 1).to(sample.dtype) + sample.unsqueeze(-1)
    begins = torch.trunc(place * step) - torch.trunc(sample * step).unsqueeze(-1)
    return torch.cat([begins.to(torch.int64).clamp(0, size - kernel), last], -1)


@decomposes(aten.fractional_max_pool2d.default, aten.fractional_max_pool3d.default)
def fractional_max_pool(x: Tensor, kernel: Ints, counts: Ints, samples: Tensor) -> tuple[Tensor, Tensor]:
    """`samples` is (images, channels, dims). The sample of the last dimension comes first in 2d, and last in 3d."""
    dims = len(counts)
    images = x if x.dim() == dims + 2 else x.unsqueeze(0)
    sizes = images.shape[-dims:]
    at = images.new_zeros((*images.shape[:2], *[1] * (2 * dims)), dtype=torch.int64)
    for d, (size, k, count, stride) in enumerate(zip(sizes, kernel, counts, _strides(sizes), strict=True)):
        sample = samples[..., dims - 1 - d if dims == 2 else d]
        place = _fractional_begins(size, k, count, sample).unsqueeze(-1) + torch.arange(k)
        shape = [1] * (2 * dims)
        shape[d], shape[dims + d] = count, k
        at = at + place.reshape(*images.shape[:2], *shape) * stride
    at = at.flatten(-dims)  # (images, channels, *counts, elements of a window)
    flat = images.flatten(2)
    elements = flat.gather(-1, at.flatten(2)).reshape(at.shape)
    values, which = elements.max(-1)
    # Of several NaN in a window, eager takes the last one.
    last_nan = torch.where(elements == elements, -1, torch.arange(at.shape[-1])).amax(-1)
    which = torch.where(last_nan < 0, which, last_nan)
    where = at.gather(-1, which.unsqueeze(-1)).squeeze(-1)
    return (values, where) if images is x else (values.squeeze(0), where.squeeze(0))
