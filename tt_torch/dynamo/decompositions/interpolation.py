"""Interpolation in one to three dimensions, and its gradients.

Along a dimension, each new element is a weighted sum of a few old ones, its taps. On the device that is a product with
a constant matrix. In this product, an infinity or a NaN reaches all elements of its row and column, even with a weight
of zero. Nearest neighbours are selected instead, which is exact. Taps are selected, too, if a dimension is so long that
its matrix would take much memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import NotImplementedType

import numpy as np
import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.per_dimension import product
from tt_torch.dynamo.decompositions.registry import decomposes
from tt_torch.dynamo.types import Function
from tt_torch.torch_private.tensors import suggest_memory_format

aten = torch.ops.aten

LARGEST = 1 << 22  # elements of a matrix: 16 MB


@dataclass(frozen=True)
class Taps:
    """New element i is the sum over t of `weights[i, t]` times the old element at `places[i, t]`.

    There are `size` old elements. `places` (new, taps) are int64, and `weights` (new, taps) are float32. For nearest
    neighbours, `most` is the largest number of new elements that have the same old element. `even` tells whether this
    number is the same for all old elements.
    """

    size: int
    places: Tensor
    weights: Tensor
    most: int = 0
    even: bool = False

    def matrix(self) -> Tensor | None:
        """The taps as a matrix (new, size); None if it is too large. More than 4 taps always become a matrix."""
        new, taps = self.places.shape
        if taps <= 4 and new * self.size > LARGEST:
            return None
        return torch.zeros(new, self.size).scatter_add(1, self.places, self.weights)


# (old size, new size, whether the corners are aligned, scale factor or None)
MakeTaps = Callable[[int, int, bool, float | None], Taps]


def _step(size: int, new: int, align: bool, factor: float | None) -> float:
    """The distance between neighbouring new elements, counted in old elements."""
    if align:
        return (size - 1) / (new - 1) if new > 1 else 0.0
    return 1 / factor if factor else size / new


def _centres(size: int, new: int, align: bool, factor: float | None) -> Tensor:
    """The positions of new elements, counted in old ones. Eager multiplies and subtracts in float32 with one rounding,
    which matters for long dimensions."""
    step = torch.full((), _step(size, new, align, factor), dtype=torch.float32).to(torch.float64)
    place = torch.arange(new, dtype=torch.float64)
    return (place * step if align else (place + 0.5) * step - 0.5).to(torch.float32)


def _taps(size: int, places: Tensor, weights: Tensor) -> Taps:
    """Taps whose places beyond the border are moved to the border."""
    return Taps(size, places.to(torch.int64).clamp(0, size - 1), weights)


def _nearest(exact: bool) -> MakeTaps:
    def taps(size: int, new: int, align: bool, factor: float | None) -> Taps:
        place = torch.arange(new, dtype=torch.float32) + (0.5 if exact else 0.0)
        step = _step(size, new, False, factor)
        found = _taps(size, torch.floor(place * step).unsqueeze(1), torch.ones(new, 1))
        runs = _runs(size, new, step, 0.5 if exact else 0.0)
        return replace(found, most=int(runs.max()), even=bool((runs == runs[0]).all()))

    return taps


def _runs(size: int, new: int, step: float, first: float) -> np.ndarray:
    """For each old element, the number of new elements whose nearest neighbour it is. They are in a row.

    This uses numpy, because tensors have no elements while a graph is traced.
    """
    places = np.floor((np.arange(new, dtype=np.float32) + np.float32(first)) * np.float32(step)).clip(0, size - 1)
    return np.bincount(places.astype(np.int64), minlength=size)


nearest, nearest_exact = _nearest(exact=False), _nearest(exact=True)


def linear(size: int, new: int, align: bool, factor: float | None) -> Taps:
    """Two taps for each new element. The nearer one has the larger weight."""
    centre = _centres(size, new, align, factor).clamp(min=0)
    first = torch.floor(centre)
    share = centre - first
    return _taps(size, torch.stack([first, first + 1], 1), torch.stack([1 - share, share], 1))


def _cubic_weight(distance: Tensor, a: float) -> Tensor:
    """Keys' convolution kernel. Source: R. Keys, Cubic Convolution Interpolation, 1981."""
    d = distance.abs()
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((d - 5) * d + 8) * d * a - 4 * a
    return torch.where(d <= 1, near, torch.where(d < 2, far, 0.0))


def cubic(size: int, new: int, align: bool, factor: float | None) -> Taps:
    """Four taps for each new element, with the weights of Keys' kernel for a = -0.75."""
    centre = _centres(size, new, align, factor)
    places = torch.floor(centre).unsqueeze(1) + torch.arange(-1, 3)
    return _taps(size, places, _cubic_weight(centre.unsqueeze(1) - places, -0.75))


def _antialiased(weight: Callable[[Tensor], Tensor], reach: float) -> MakeTaps:
    """Taps in a window. If the image gets smaller, the window is wider by the factor `step`. Weights add up to 1."""

    def taps(size: int, new: int, align: bool, factor: float | None) -> Taps:
        step = _step(size, new, align, factor)
        width = max(step, 1.0)
        centre = ((torch.arange(new, dtype=torch.float32) + 0.5) * step).unsqueeze(1)
        first = (centre - reach * width + 0.5).trunc().clamp(min=0)
        last = (centre + reach * width + 0.5).trunc().clamp(max=size)
        places = first + torch.arange(int(2 * reach * width) + 2)
        weights = torch.where(places < last, weight((places - centre + 0.5) / width), 0.0)
        return _taps(size, places, weights / weights.sum(1, keepdim=True))

    return taps


def _lanczos_weight(distance: Tensor) -> Tensor:
    """Source: C. Duchon, Lanczos Filtering in One and Two Dimensions, 1979."""
    return torch.where(distance.abs() < 3, torch.sinc(distance) * torch.sinc(distance / 3), 0.0)


linear_aa = _antialiased(lambda d: (1 - d.abs()).clamp(min=0), 1.0)
cubic_aa = _antialiased(lambda d: _cubic_weight(d, -0.5), 2.0)
lanczos_aa = _antialiased(_lanczos_weight, 3.0)

# A function of old sizes, new sizes and the number of a dimension. It tells whether eager uses only the sizes, and not
# the factors from which the sizes were rounded.
Forgets = Callable[[Sequence[int], Sequence[int], int], bool]


def never(old: Sequence[int], new: Sequence[int], i: int) -> bool:
    return False


def same(old: Sequence[int], new: Sequence[int], i: int) -> bool:
    return new[i] == old[i]


def all_same(old: Sequence[int], new: Sequence[int], i: int) -> bool:
    return list(new) == list(old)


def same_or_double(old: Sequence[int], new: Sequence[int], i: int) -> bool:
    return new[i] in (old[i], 2 * old[i])


# Names of the ops: their taps, and which factors eager forgets in them and in their `_backward`.
SMOOTH: dict[str, tuple[MakeTaps, Forgets, Forgets]] = {
    "upsample_linear1d": (linear, same, same),
    "upsample_bilinear2d": (linear, same, same),
    "upsample_trilinear3d": (linear, same, same),
    "upsample_bicubic2d": (cubic, never, all_same),
    "_upsample_bilinear2d_aa": (linear_aa, same, never),
    "_upsample_bicubic2d_aa": (cubic_aa, same, never),
    "_upsample_lanczos2d_aa": (lanczos_aa, same, never),
}
NEAREST: dict[str, tuple[MakeTaps, Forgets, Forgets]] = {
    "upsample_nearest1d": (nearest, never, same_or_double),
    "upsample_nearest2d": (nearest, same_or_double, same_or_double),
    "upsample_nearest3d": (nearest, same_or_double, same_or_double),
    "_upsample_nearest_exact1d": (nearest_exact, never, never),
    "_upsample_nearest_exact2d": (nearest_exact, never, never),
    "_upsample_nearest_exact3d": (nearest_exact, never, never),
}


def _every(
    make: MakeTaps,
    forgets: Forgets,
    old: Sequence[int],
    new: Sequence[int],
    align: bool,
    factors: Sequence[float | None],
) -> list[Taps]:
    """The taps of each dimension. Tracing leaves out the last factors when they are None."""
    given = [*factors, *[None] * (len(new) - len(factors))]
    known = [None if forgets(old, new, i) else factor for i, factor in enumerate(given)]
    return [make(s, n, align, f) for s, n, f in zip(old, new, known, strict=True)]


def _along(weights: Tensor, dim: int, rank: int) -> Tensor:
    return weights.reshape([-1 if d == dim else 1 for d in range(rank)])


def _chosen(x: Tensor, dim: int, taps: Taps) -> Tensor:
    """Each element by its only tap."""
    return x.index_select(dim, taps.places.squeeze(1))


def _weighted(x: Tensor, dim: int, taps: Taps) -> Tensor:
    if (matrix := taps.matrix()) is not None:
        return product(x, dim, matrix)
    pairs = zip(taps.places.unbind(1), taps.weights.unbind(1), strict=True)
    parts = [x.index_select(dim, places) * _along(weights, dim, x.dim()) for places, weights in pairs]
    return torch.stack(parts).sum(0)


def _weighted_backward(grad: Tensor, dim: int, taps: Taps) -> Tensor:
    """The gradient of `_weighted` for its first operand."""
    if (matrix := taps.matrix()) is not None:
        return product(grad, dim, matrix.t())
    result = grad.new_zeros([*grad.shape[:dim], taps.size, *grad.shape[dim + 1 :]])
    for places, weights in zip(taps.places.unbind(1), taps.weights.unbind(1), strict=True):
        result = result.index_add(dim, places, grad * _along(weights, dim, grad.dim()))
    return result


def _chosen_backward(grad: Tensor, dim: int, taps: Taps) -> Tensor:
    """The gradient of `_chosen`: sums of neighbours, which keep an infinity and NaN with their own element."""
    if taps.even:
        return grad.unflatten(dim, (taps.size, taps.most)).sum(dim + 1)
    places, old = taps.places.squeeze(1), torch.arange(taps.size)
    first, end = (torch.searchsorted(places, old, right=right).unsqueeze(1) for right in (False, True))
    rows = first + torch.arange(taps.most)
    found = grad.index_select(dim, rows.clamp(max=grad.shape[dim] - 1).flatten()).unflatten(dim, rows.shape)
    sizes = [*[1] * dim, *rows.shape, *[1] * (grad.dim() - dim - 1)]
    return torch.where((rows < end).reshape(sizes), found, 0).sum(dim + 1)


def _per_dimension(x: Tensor, every: Sequence[Taps], step: Callable[[Tensor, int, Taps], Tensor]) -> Tensor:
    """Applies one step per dimension after the first two. The result has eager's memory format: channels last if `x`
    has this format."""
    result = x
    for dim, taps in enumerate(every, start=2):
        result = step(result, dim, taps)
    return result.contiguous(memory_format=suggest_memory_format(x))


def _in_float32(x: Tensor, every: Sequence[Taps], step: Callable[[Tensor, int, Taps], Tensor]) -> Tensor:
    return _per_dimension(x.to(torch.promote_types(x.dtype, torch.float32)), every, step).to(x.dtype)


def _smooth(make: MakeTaps, forgets: Forgets) -> Function:
    def upsample(x: Tensor, new: Sequence[int], align: bool, *factors: float | None) -> Tensor | NotImplementedType:
        if not x.is_floating_point():
            return NotImplemented
        return _in_float32(x, _every(make, forgets, x.shape[2:], new, align, factors), _weighted)

    return upsample


def _is_by_whole_numbers(x: Tensor, new: Sequence[int]) -> bool:
    """Whether eager's kernel looks at sizes before it looks at factors. Two kernels do: the kernel for more than three
    channels that are last in memory, and the kernel for images whose rows and columns are at most 128 together. The
    other kernels only look at factors."""
    last = {2: torch.channels_last, 3: torch.channels_last_3d}.get(len(new))
    deep = last is not None and x.shape[1] > 3 and x.is_contiguous(memory_format=last)
    return deep or (len(new) == 2 and sum(new) <= 128)


def _selected(make: MakeTaps, forgets: Forgets) -> Function:
    def upsample(x: Tensor, new: Sequence[int], *factors: float | None) -> Tensor:
        forgotten = forgets if _is_by_whole_numbers(x, new) else never
        return _per_dimension(x, _every(make, forgotten, x.shape[2:], new, False, factors), _chosen)

    return upsample


def _smooth_backward(make: MakeTaps, forgets: Forgets) -> Function:
    def backward(grad: Tensor, new: Sequence[int], old: Sequence[int], align: bool, *factors: float | None) -> Tensor:
        return _in_float32(grad, _every(make, forgets, old[2:], new, align, factors), _weighted_backward)

    return backward


def _selected_backward(make: MakeTaps, forgets: Forgets) -> Function:
    def backward(grad: Tensor, new: Sequence[int], old: Sequence[int], *factors: float | None) -> Tensor:
        return _in_float32(grad, _every(make, forgets, old[2:], new, False, factors), _chosen_backward)

    return backward


for table, forward, backward in ((SMOOTH, _smooth, _smooth_backward), (NEAREST, _selected, _selected_backward)):
    for name, (make, forgets, forgets_backward) in table.items():
        decomposes(getattr(aten, name).default)(forward(make, forgets))
        decomposes(getattr(aten, f"{name}_backward").default)(backward(make, forgets_backward))
