"""Sampling of images and volumes at the points of a grid, as eager PyTorch's kernels do it.

PyTorch's decomposition for images multiplies neighbours outside of the image by zero, so an infinite image gives NaN
there, and it forgets a NaN of the grid. It also computes bfloat16 in float32, but eager's kernels round each step, and
so find other neighbours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import decomposes

aten = torch.ops.aten

BILINEAR, NEAREST = 0, 1  # the op's integers for modes; bicubic is 2
BORDER, REFLECTION = 1, 2  # the op's integers for paddings; zeros are 0
_CUBIC = -0.75  # the parameter of the cubic convolution, as eager's kernels have it


def _points(grid: Tensor, size: int, d: int, align: bool) -> Tensor:
    """Positions among `size` elements, from coordinates between -1 and 1 that begin with the last dimension."""
    points = grid[..., -1 - d] + 1
    return points * ((size - 1) / 2) if align else points * (size / 2) - 0.5


def _reflected(place: Tensor, low: float, span: float) -> Tensor:
    """Positions that are reflected at `low` and `low + span` until they are between them."""
    if span == 0:
        return torch.zeros_like(place)
    distance = (place - low).abs()
    rest = distance - torch.trunc(distance / (2 * span)) * (2 * span)
    return torch.minimum(rest, 2 * span - rest) + low


def _padded(place: Tensor, size: int, padding: int, align: bool) -> Tensor:
    if padding == REFLECTION:
        place = _reflected(place, 0, size - 1) if align else _reflected(place, -0.5, size)
    # Eager's kernel takes NaN for the first place.
    return place.nan_to_num(0.0, math.inf, -math.inf).clamp(0, size - 1) if padding else place


def _sampled(x: Tensor, places: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The elements of `x` at whole places, and whether the places are inside. `places` has a tensor of shape (batch,
    *new sizes) per dimension of the image, and the elements have shape (batch, channels, *new sizes)."""
    batch, channels, *sizes = x.shape
    inside, index = torch.ones((), dtype=torch.bool), torch.zeros((), dtype=torch.int64)
    for d, (place, size) in enumerate(zip(places, sizes, strict=True)):
        inside = inside & (place >= 0) & (place <= size - 1)
        # The integer is clamped again, so that interval analysis knows its bounds.
        near = place.clamp(0, size - 1).to(torch.int64).clamp(0, size - 1)
        index = index + near * math.prod(sizes[d + 1 :])
    rows = index.reshape(batch, 1, -1).expand(batch, channels, -1)
    return x.flatten(2).gather(2, rows).reshape([batch, channels, *index.shape[1:]]), inside.unsqueeze(1)


def _or_zero(value: Tensor, inside: Tensor) -> Tensor:
    return torch.where(inside, value, 0)


def _cubic_shares(rest: Tensor) -> list[Tensor]:
    """The weights of the four neighbours of a point that is `rest` behind the second one (Keys' cubic convolution)."""

    def near(t: Tensor) -> Tensor:
        return ((_CUBIC + 2) * t - (_CUBIC + 3)) * t * t + 1

    def far(t: Tensor) -> Tensor:
        return ((_CUBIC * t - 5 * _CUBIC) * t + 8 * _CUBIC) * t - 4 * _CUBIC

    return [share.unsqueeze(1) for share in (far(rest + 1), near(rest), near(1 - rest), far(2 - rest))]


def _weighted(values: Sequence[Tensor], shares: Sequence[Tensor]) -> Tensor:
    total = values[0] * shares[0]
    for value, share in zip(values[1:], shares[1:], strict=True):
        total = total + value * share
    return total


def _bicubic(x: Tensor, points: Sequence[Tensor], padded: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
    lows = [torch.floor(place) for place in points]
    by_row, by_column = [_cubic_shares(place - low) for place, low in zip(points, lows, strict=True)]
    rows, columns = [[pad(low + i) for i in range(-1, 3)] for low, pad in zip(lows, padded, strict=True)]
    of_rows = [_weighted([_or_zero(*_sampled(x, (row, column))) for column in columns], by_column) for row in rows]
    return _weighted(of_rows, by_row)


@decomposes(aten.grid_sampler_2d.default)
def grid_sampler_2d(x: Tensor, grid: Tensor, mode: int, padding: int, align: bool) -> Tensor:
    """The weighted sum of the neighbours of each point. A neighbour outside of the image is zero, but its weight
    counts, so a point that is infinite or NaN gives NaN.

    x: (batch, channels, height, width), grid: (batch, *new sizes, 2), result: (batch, channels, *new sizes).
    """
    points = [_points(grid, size, d, align) for d, size in enumerate(x.shape[2:])]
    padded = [partial(_padded, size=size, padding=padding, align=align) for size in x.shape[2:]]
    if mode not in (BILINEAR, NEAREST):
        return _bicubic(x, points, padded)
    places = [pad(place) for place, pad in zip(points, padded, strict=True)]
    if mode == NEAREST:
        return _or_zero(*_sampled(x, [torch.round(place) for place in places]))
    lows = [torch.floor(place) for place in places]
    south, east = [(place - low).unsqueeze(1) for place, low in zip(places, lows, strict=True)]
    corners = itertools.product(*((low, low + 1) for low in lows))
    shares = [(1 - east) * (1 - south), east * (1 - south), (1 - east) * south, east * south]
    return _weighted([_or_zero(*_sampled(x, corner)) for corner in corners], shares)


def _places_of_volume(grid: Tensor, size: int, d: int, padding: int, align: bool) -> Tensor:
    place = (grid[..., -1 - d] + 1) / 2 * (size - 1) if align else ((grid[..., -1 - d] + 1) * size - 1) / 2
    if padding == REFLECTION:
        low, span = (0.0, size - 1) if align else (-0.5, size)
        distance = (place - low).abs()
        rest, turns = torch.fmod(distance, span), torch.floor(distance / span)
        place = torch.where(turns % 2 == 0, rest + low, span - rest + low) if span else torch.zeros_like(place)
    # Eager's kernel for volumes takes NaN for the last place.
    return place.nan_to_num(size - 1, math.inf, -math.inf).clamp(0, size - 1) if padding else place


@decomposes(aten.grid_sampler_3d.default)
def grid_sampler_3d(x: Tensor, grid: Tensor, mode: int, padding: int, align: bool) -> Tensor:
    """The weighted sum of those neighbours of each point that are inside of the volume.

    x: (batch, channels, depth, height, width), grid: (batch, *new sizes, 3), result: (batch, channels, *new sizes).
    """
    places = [_places_of_volume(grid, size, d, padding, align) for d, size in enumerate(x.shape[2:])]
    if mode == NEAREST:
        return _or_zero(*_sampled(x, [torch.round(place) for place in places]))
    lows = [torch.floor(place) for place in places]
    neighbours = [((low, low + 1 - place), (low + 1, place - low)) for place, low in zip(places, lows, strict=True)]
    total = torch.zeros((), dtype=x.dtype)
    for corner in itertools.product(*neighbours):
        value, inside = _sampled(x, [place for place, _ in corner])
        depth, height, width = (share for _, share in corner)
        share = (width * height * depth).unsqueeze(1)  # in eager's order
        total = total + _or_zero(value * share, inside)
    return total
