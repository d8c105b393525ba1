"""Sampling of volumes at the points of a grid. For images, PyTorch has a decomposition."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import decomposes
from tt_torch.torch_private.tracing import pw_cast_for_opmath

aten = torch.ops.aten

NEAREST, BORDER, REFLECTION = 1, 1, 2  # the op's integers for mode and padding


def _reflected(place: Tensor, low: float, high: float) -> Tensor:
    span = high - low
    if span == 0:
        return torch.zeros_like(place)
    distance = (place - low).abs()
    turns = torch.floor(distance / span)
    rest = distance - turns * span
    return torch.where(turns % 2 == 0, rest + low, high - rest)


def _places(points: Tensor, size: int, padding: int, align: bool) -> Tensor:
    """Positions among `size` elements, from points between -1 and 1."""
    place = (points + 1) / 2 * (size - 1) if align else ((points + 1) * size - 1) / 2
    if padding == REFLECTION:
        place = _reflected(place, 0, size - 1) if align else _reflected(place, -0.5, size - 0.5)
    return place.clamp(0, size - 1) if padding in (BORDER, REFLECTION) else place


@decomposes(aten.grid_sampler_3d.default)
@pw_cast_for_opmath
def grid_sampler_3d(x: Tensor, grid: Tensor, mode: int, padding: int, align: bool) -> Tensor:
    """The weighted sum of the neighbours of each point. Neighbours outside of the volume are zero.

    x: (batch, channels, depth, height, width), grid: (batch, *new sizes, 3), result: (batch, channels, *new sizes).
    """
    batch, channels, *sizes = x.shape
    neighbours = []
    for d, size in enumerate(sizes):
        place = _places(grid[..., 2 - d], size, padding, align)  # points are (width, height, depth)
        low = torch.floor(place)
        both = [(low, low + 1 - place), (low + 1, place - low)]
        neighbours.append([(torch.round(place), torch.ones_like(place))] if mode == NEAREST else both)
    flat, total = x.flatten(2), torch.zeros((), dtype=x.dtype)
    for corner in itertools.product(*neighbours):
        weight, index = torch.ones((), dtype=x.dtype), torch.zeros((), dtype=torch.int64)
        for d, ((place, share), size) in enumerate(zip(corner, sizes, strict=True)):
            weight = weight * torch.where((place >= 0) & (place <= size - 1), share, 0)
            # The integer is clamped again, so that interval analysis knows its bounds.
            near = place.clamp(0, size - 1).to(torch.int64).clamp(0, size - 1)
            index = index + near * math.prod(sizes[d + 1 :])
        rows = index.reshape(batch, 1, -1).expand(batch, channels, -1)
        total = total + flat.gather(2, rows) * weight.reshape(batch, 1, -1)
    return total.reshape([batch, channels, *grid.shape[1:4]])
