"""Interpolation in one to three dimensions, and its gradients: products with constant matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.per_dimension import apply, apply_transposed, one_hot
from tt_torch.dynamo.decompositions.registry import decomposes

aten = torch.ops.aten

# (old size, new size, whether the corners are aligned, scale factor or None) -> (new size, old size)
MakeMatrix = Callable[[int, int, bool, float | None], Tensor]


def _step(size: int, new: int, align: bool, factor: float | None) -> float:
    """How far apart new elements lie, in old ones."""
    if align:
        return (size - 1) / (new - 1) if new > 1 else 0.0
    return 1 / factor if factor else size / new


def _centres(size: int, new: int, align: bool, factor: float | None) -> Tensor:
    """Where new elements lie, counted in old ones."""
    step, place = _step(size, new, align, factor), torch.arange(new, dtype=torch.float32)
    return place * step if align else (place + 0.5) * step - 0.5


def nearest_places(size: int, new: int, exact: bool, factor: float | None) -> Tensor:
    place = torch.arange(new, dtype=torch.float32) + (0.5 if exact else 0.0)
    return torch.floor(place * _step(size, new, False, factor)).to(torch.int64).clamp(max=size - 1)


def nearest(size: int, new: int, align: bool, factor: float | None) -> Tensor:
    return one_hot(nearest_places(size, new, False, factor), size)


def nearest_exact(size: int, new: int, align: bool, factor: float | None) -> Tensor:
    return one_hot(nearest_places(size, new, True, factor), size)


def linear(size: int, new: int, align: bool, factor: float | None) -> Tensor:
    centre = _centres(size, new, align, factor).clamp(0, size - 1)
    return (1 - (centre.unsqueeze(1) - torch.arange(size)).abs()).clamp(min=0)


def _cubic_weight(distance: Tensor, a: float) -> Tensor:
    """Keys' convolution kernel. Source: R. Keys, Cubic Convolution Interpolation, 1981."""
    d = distance.abs()
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return torch.where(d <= 1, near, torch.where(d < 2, far, 0.0))


def cubic(size: int, new: int, align: bool, factor: float | None) -> Tensor:
    """Neighbours beyond the border are the border."""
    centre = _centres(size, new, align, factor)
    place = torch.floor(centre).unsqueeze(1) + torch.arange(-1, 3)
    weight = _cubic_weight(centre.unsqueeze(1) - place, -0.75)
    return (weight.unsqueeze(-1) * one_hot(place, size)).sum(1)


def _antialiased(weight: Callable[[Tensor], Tensor], reach: float) -> MakeMatrix:
    """A window as wide as the elements lie apart when the image gets smaller, its weights made to add up to one."""

    def matrix(size: int, new: int, align: bool, factor: float | None) -> Tensor:
        step = _step(size, new, align, factor)
        width = max(step, 1.0)
        centre = ((torch.arange(new, dtype=torch.float32) + 0.5) * step).unsqueeze(1)
        first = (centre - reach * width + 0.5).trunc().clamp(min=0)
        last = (centre + reach * width + 0.5).trunc().clamp(max=size)
        place = torch.arange(size)
        value = torch.where((place >= first) & (place < last), weight((place - centre + 0.5) / width), 0.0)
        return value / value.sum(1, keepdim=True)

    return matrix


linear_aa = _antialiased(lambda d: (1 - d.abs()).clamp(min=0), 1.0)
cubic_aa = _antialiased(lambda d: _cubic_weight(d, -0.5), 2.0)


def _matrices(
    make: MakeMatrix, sizes: Sequence[int], new: Sequence[int], align: bool, factors: Sequence[float | None]
) -> list[Tensor]:
    return [make(s, n, align, f) for s, n, f in zip(sizes, new, factors or [None] * len(new), strict=True)]


# Names of the ops, which `upsample_` and `_backward` belong to, and the matrix of each.
SMOOTH = {
    "upsample_linear1d": linear,
    "upsample_bilinear2d": linear,
    "upsample_trilinear3d": linear,
    "upsample_bicubic2d": cubic,
    "_upsample_bilinear2d_aa": linear_aa,
    "_upsample_bicubic2d_aa": cubic_aa,
}
NEAREST = {f"upsample_nearest{n}d": nearest for n in (1, 2, 3)}
NEAREST |= {f"_upsample_nearest_exact{n}d": nearest_exact for n in (1, 2, 3)}


def _smooth(make: MakeMatrix) -> Callable[..., Any]:
    def upsample(x: Tensor, new: Sequence[int], align: bool, *factors: float | None) -> Any:
        if not x.is_floating_point():
            return NotImplemented
        return apply(x, _matrices(make, x.shape[2:], new, align, factors))

    return upsample


def _copied(exact: bool) -> Callable[..., Any]:
    def upsample(x: Tensor, new: Sequence[int], *factors: float | None) -> Tensor:
        for i, (size, factor) in enumerate(zip(new, factors or [None] * len(new), strict=True)):
            if size != x.shape[2 + i]:
                x = x.index_select(2 + i, nearest_places(x.shape[2 + i], size, exact, factor))
        return x

    return upsample


def _smooth_backward(make: MakeMatrix) -> Callable[..., Any]:
    def backward(grad: Tensor, new: Sequence[int], old: Sequence[int], align: bool, *factors: float | None) -> Tensor:
        return apply_transposed(grad, _matrices(make, old[2:], new, align, factors))

    return backward


def _nearest_backward(make: MakeMatrix) -> Callable[..., Any]:
    def backward(grad: Tensor, new: Sequence[int], old: Sequence[int], *factors: float | None) -> Tensor:
        return apply_transposed(grad, _matrices(make, old[2:], new, False, factors))

    return backward


for name, make in SMOOTH.items():
    decomposes(getattr(aten, name).default)(_smooth(make))
    decomposes(getattr(aten, f"{name}_backward").default)(_smooth_backward(make))
for name, make in NEAREST.items():
    decomposes(getattr(aten, name).default)(_copied(make is nearest_exact))
    decomposes(getattr(aten, f"{name}_backward").default)(_nearest_backward(make))
