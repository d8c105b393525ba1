"""Distances, variance, histograms, and positions in sorted tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import NARROW, decomposes, lengths
from tt_torch.dynamo.types import Argument

aten = torch.ops.aten

LONG = 25  # from this number of rows, PyTorch computes Euclidean distances by a matrix product


@decomposes(aten._cdist_forward.default)
def cdist(x: Tensor, y: Tensor, p: float, mode: int | None) -> Tensor:
    """The p-norm of the difference of each row of x (..., m, k) and each row of y (..., n, k): shape (..., m, n)."""
    rows = max(x.shape[-2], y.shape[-2])
    if p != 2 or mode == 2 or (mode != 1 and rows <= LONG):
        apart = x.unsqueeze(-2) - y.unsqueeze(-3)
        # Eager's kernel keeps the larger number of each comparison, and no comparison with NaN is true.
        return _length(torch.where(apart == apart, apart, 0) if p == math.inf else apart, p)
    return aten._euclidean_dist(x, y)


@decomposes(aten._pdist_forward.default)
def pdist(x: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference of each row and every later row: shape (n * (n - 1) / 2,)."""
    first, second = torch.triu_indices(x.shape[0], x.shape[0], 1)
    return _length(x[first] - x[second], p)


def _length(x: Tensor, p: float) -> Tensor:
    """The p-norm of each row. `vector_norm` takes the only element of a row as it is. The kernels for distances take
    its power and the root of that, which may overflow. For p = 0, `vector_norm` counts NaN. These kernels add it."""
    if p == 0:
        return torch.where(x == x, (x != 0).to(x.dtype), x).sum(-1)
    if p in (1, math.inf):
        return torch.linalg.vector_norm(x, p, -1)
    return x.square().sum(-1).sqrt() if p == 2 else x.abs().pow(p).sum(-1).pow(1 / p)


@decomposes(aten.mean.default, aten.mean.dim)
def mean(
    x: Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor | NotImplementedType:
    """The mean of integers, which eager converts first, or the mean in a narrow dtype of wider elements, which eager
    rounds only once, at the end. In float16, the sum and the number of elements may be infinite."""
    if dtype is not None and dtype.is_floating_point and not (x.is_floating_point() or x.is_complex()):
        return aten.mean.dim(x.to(dtype), dim, keepdim)
    made = dtype or x.dtype
    if made not in NARROW or x.is_complex() or (x.dtype in NARROW and torch.float16 not in (made, x.dtype)):
        return NotImplemented
    return aten.mean.dim(x.to(torch.float32), dim, keepdim).to(made)


@decomposes(aten.var.correction)
def variance(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor | NotImplementedType:
    """Variance or standard deviation without degrees of freedom, which is NaN or infinite. torch-mlir would divide by a
    negative number."""
    dims = list(dim or range(x.dim()))
    freedom = math.prod(lengths(x, d)[1] for d in dims) - (1 if correction is None else correction)
    if not x.numel():
        return torch.full_like(x.sum(dims, keepdim), math.nan)
    if x.dim() and freedom > 0:
        return NotImplemented
    if not x.dim():
        return torch.where(x == x, 0.0 if freedom > 0 else math.nan, math.nan).to(x.dtype)
    spread = (x - x.mean(dims, True)).abs().amax(dims, keepdim)
    return torch.where(spread > 0, math.inf, math.nan).to(x.dtype)


@decomposes(aten.std.correction)
def deviation(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor | NotImplementedType:
    """If numbers are some hundreds apart, their variance is too large for float16, but their deviation is not."""
    if x.dtype is not torch.float16:
        return variance(x, dim, correction=correction, keepdim=keepdim)
    return aten.std(x.to(torch.float32), dim, correction=correction, keepdim=keepdim).to(x.dtype)


@decomposes(aten.var_mean.correction)
def variance_and_mean(
    x: Tensor, dim: Sequence[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    dims = list(dim or range(x.dim()))
    return torch.var(x, dims, correction=correction, keepdim=keepdim), torch.mean(x, dims, keepdim)


@decomposes(aten.histc.default)
def histc(x: Tensor, bins: int = 100, low: float = 0, high: float = 0) -> Tensor:
    """Adds 1 at the bin of each element; elements outside add nothing. If the bounds are equal, the smallest and the
    largest element take their place."""
    x = x.reshape(-1)
    if not x.numel():
        return x.new_zeros(bins)
    least, most = (x.min(), x.max()) if low == high else (x.new_full((), low), x.new_full((), high))
    single = least == most
    least, most = torch.where(single, least - 1, least), torch.where(single, most + 1, most)
    inside = (x >= least) & (x <= most)
    place = torch.floor((x - least) * bins / (most - least)).clamp(0, bins)  # in eager's order
    # NaN has no place. In narrow floats, bins - 1 may be rounded to bins, so the clamp to it is one of integers.
    place = torch.where(inside, place, 0).to(torch.int64).clamp(max=bins - 1)
    return x.new_zeros(bins).scatter_add(0, place, inside.to(x.dtype))


@decomposes(aten.searchsorted.Tensor)
def searchsorted(
    edges: Tensor,
    values: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """For each value, the number of edges that are smaller; with `right`, smaller or equal. edges: (..., n), values:
    (..., m) or, for edges of one dimension, any shape.

    This is a binary search with eager's steps and comparisons, so edges that are NaN or not sorted give eager's result.
    As in eager, both are compared in their common dtype: a single value beside edges of uint8 becomes uint8.
    """
    edges, upper = edges if sorter is None else edges.gather(-1, sorter), right or side == "right"
    shape, n, common = values.shape, edges.shape[-1], torch.result_type(edges, values)
    edges, values = edges.to(common), values.to(common)
    values = values.reshape(-1) if edges.dim() == 1 else values
    low, high = (torch.full(values.shape, bound, dtype=torch.int64) for bound in (0, n))
    for _ in range(n.bit_length()):
        middle = ((low + high) >> 1).clamp(max=n - 1)  # (low + high) >> 1 may be n in a search that has ended
        edge = edges.gather(-1, middle)
        reached = edge > values if upper else edge >= values
        high, low = torch.where(reached, middle, high), torch.where(reached | (low >= high), low, middle + 1)
    return low.to(torch.int32 if out_int32 else torch.int64).reshape(shape)


@decomposes(aten.searchsorted.Scalar)
def searchsorted_scalar(edges: Tensor, value: float, **options: Argument) -> Tensor:
    return searchsorted(edges, torch.full((), value), **options)


@decomposes(aten.bucketize.Tensor)
def bucketize(values: Tensor, edges: Tensor, **options: Argument) -> Tensor:
    return searchsorted(edges, values, **options)


@decomposes(aten.isin.Tensor_Tensor)
def isin(x: Tensor, of: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """A search in sorted numbers. NaN equals nothing, and would make the search wrong, so a number replaces it."""
    dtype = torch.result_type(x, of)
    x, of = x.to(dtype), of.to(dtype).flatten()
    if not of.numel():
        return torch.full(x.shape, invert)
    number = of == of
    least = torch.where(number, of, torch.inf).amin() if dtype.is_floating_point else of[0]
    ordered = torch.where(number, of, least).sort()[0]
    at = torch.searchsorted(ordered, x.contiguous()).clamp(max=len(ordered) - 1)
    # `ordered[at]` would read the value of a place without dimensions.
    found = (aten.index.Tensor(ordered, [at]) == x) & number.any()
    return ~found if invert else found


# --- histograms in one and more dimensions


def _edges(x: Tensor, bins: Sequence[int], bounds: Sequence[float] | None) -> tuple[Tensor, ...]:
    """The edges of equal bins for each column of x (elements, dims), between bounds or its extreme elements."""
    edges = []
    for d, count in enumerate(bins):
        if bounds:
            low, high = (torch.full((), bound, dtype=x.dtype) for bound in bounds[2 * d : 2 * d + 2])
        else:
            low, high = x[:, d].amin(), x[:, d].amax()
        single = low == high
        low, high = torch.where(single, low - 0.5, low), torch.where(single, high + 0.5, high)
        place = torch.arange(count + 1)
        up, down = (p.to(x.dtype) * ((high - low) / count) for p in (place, count - place))
        edges.append(torch.where(place < (count + 1) // 2, low + up, high - down))
    return tuple(edges)


def _counts(x: Tensor, edges: Sequence[Tensor], weight: Tensor | None, density: bool) -> Tensor:
    """The number of elements, or their weights, in each bin. A bin includes its lower edge; the last bin both edges."""
    shape = [e.shape[0] - 1 for e in edges]
    place: Tensor | int = 0
    inside = torch.ones(x.shape[:1], dtype=torch.bool)
    for d, (edge, count) in enumerate(zip(edges, shape, strict=True)):
        column = x[:, d].contiguous()
        at = (torch.searchsorted(edge, column, right=True) - 1).clamp(0, count - 1)
        inside = inside & (column >= edge[0]) & (column <= edge[-1])
        place = place * count + at
    ones = inside.to(x.dtype) if weight is None else torch.where(inside, weight.reshape(-1), 0)
    counts = x.new_zeros(math.prod(shape)).scatter_add(0, place, ones).reshape(shape)  # type: ignore[arg-type]
    if density:
        counts = counts / counts.sum()
        for d, edge in enumerate(edges):
            counts = counts / edge.diff().reshape([-1 if i == d else 1 for i in range(len(shape))])
    return counts


def _rows(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1])


@decomposes(aten.histogram.bin_ct)
def histogram(
    x: Tensor,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor] | NotImplementedType:
    if not x.numel():
        return NotImplemented
    x = x.reshape(-1, 1)
    edges = _edges(x, [bins], range)
    return _counts(x, edges, weight, density), edges[0]


@decomposes(aten.histogram.bins_tensor)
def histogram_between(
    x: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor] | NotImplementedType:
    return (_counts(x.reshape(-1, 1), [bins], weight, density), bins.clone()) if x.numel() else NotImplemented


@decomposes(aten._histogramdd_bin_edges.default)
def histogramdd_edges(
    x: Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> list[Tensor] | NotImplementedType:
    return list(_edges(_rows(x), bins, range)) if x.numel() else NotImplemented


@decomposes(aten._histogramdd_from_bin_cts.default)
def histogramdd(
    x: Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Tensor | NotImplementedType:
    return _counts(_rows(x), _edges(_rows(x), bins, range), weight, density) if x.numel() else NotImplemented


@decomposes(aten._histogramdd_from_bin_tensors.default)
def histogramdd_between(
    x: Tensor, bins: Sequence[Tensor], *, weight: Tensor | None = None, density: bool = False
) -> Tensor | NotImplementedType:
    return _counts(_rows(x), bins, weight, density) if x.numel() else NotImplemented
