"""Sorting, scans, and ops that are computed by sorting."""

from __future__ import annotations

from collections.abc import Callable
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo import facts
from tt_torch.dynamo.decompositions.integers import as_int32
from tt_torch.dynamo.decompositions.registry import decomposes
from tt_torch.dynamo.facts import Fact
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.torch_private.ops import OpOverload
from tt_torch.torch_private.tensors import without_modes
from tt_torch.torch_private.tracing import pw_cast_for_opmath

aten = torch.ops.aten

Combine = Callable[..., tuple[Tensor, ...]]


def along(*ops: OpOverload) -> Callable[[Function], Function]:
    """Registers a function (x, ...) -> values and positions along a dimension. For a scalar, the position is 0."""

    def register(function: Function) -> Function:
        def of_any(x: Tensor, *args: Argument, **kwargs: Argument) -> Result:
            return function(x, *args, **kwargs) if x.dim() else (x.clone(), torch.zeros_like(x, dtype=torch.int64))

        decomposes(*ops)(of_any)
        return function

    return register


@along(aten.sort.default, aten.sort.stable)
def sort(*_: Argument, **__: Argument) -> NotImplementedType:
    return NotImplemented  # it becomes a composite


for op in (aten.max.dim, aten.min.dim):
    along(op)(as_int32(op))


@along(aten.topk.default)
def topk(x: Tensor, k: int, dim: int = -1, *_: Argument, **__: Argument) -> tuple[Tensor, Tensor] | NotImplementedType:
    if k:
        return NotImplemented
    shape = [0 if d == dim % x.dim() else s for d, s in enumerate(x.shape)]
    return x.new_zeros(shape), x.new_zeros(shape, dtype=torch.int64)


def _pick(x: Tensor, dim: int, at: int | Tensor, keepdim: bool, order: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The value and position of the element number `at` in sorted order; `at` is one number or one per row."""
    picked = [t.narrow(dim, at, 1).clone() if isinstance(at, int) else t.gather(dim, at) for t in order]
    values, positions = (t if keepdim else t.squeeze(dim) for t in picked)
    return values, positions


@along(aten.kthvalue.default)
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _pick(x, dim, k - 1, keepdim, torch.sort(x, dim))


@along(aten.median.dim)
def median(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower of the two middle elements, or the first NaN."""
    size = x.shape[dim]
    values, positions = _pick(x, dim, (size - 1) // 2, True, torch.sort(x, dim))
    if x.is_floating_point():
        nan = x != x
        found = nan.any(dim, True)
        values = torch.where(found, torch.nan, values)
        positions = torch.where(found, nan.to(torch.int32).argmax(dim, True), positions)
    return (values, positions) if keepdim else (values.squeeze(dim), positions.squeeze(dim))


@along(aten.nanmedian.dim)
def nanmedian(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The median without NaNs, which are last in sorted order."""
    count = (x == x).sum(dim, True)
    return _pick(x, dim, (count - 1).clamp(min=0) // 2, keepdim, torch.sort(x, dim))


@decomposes(aten.median.default)
def median_of_all(x: Tensor) -> Tensor:
    return median(x.reshape(-1), 0)[0] if x.numel() else _median_of_nothing(x.dtype)


@decomposes(aten.nanmedian.default)
def nanmedian_of_all(x: Tensor) -> Tensor:
    return nanmedian(x.reshape(-1), 0)[0] if x.numel() else _median_of_nothing(x.dtype)


def _median_of_nothing(dtype: torch.dtype) -> Tensor:
    """NaN, or the integer to which the CPU converts it."""
    with without_modes():  # while tracing, tensors have no values
        value = torch.tensor(torch.nan).to(dtype).item()
    return torch.full((), value, dtype=dtype)


@along(aten.mode.default)
def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The end of the first longest run of equal elements in sorted order."""
    x = x.movedim(dim, -1)
    values, positions = torch.sort(x, stable=True, dim=-1)
    size = x.shape[-1]
    place = torch.arange(size).expand(x.shape)
    changes = values[..., 1:] != values[..., :-1]
    edge = torch.ones_like(values[..., :1], dtype=torch.bool)
    begun = torch.where(torch.cat([edge, changes], -1), place, 0)
    length = torch.where(torch.cat([changes, edge], -1), place - _scan((begun, begun), -1, _larger)[0], -1)
    end = length.argmax(-1, True)
    picked = _pick(values, -1, end, True, (values, positions))
    return tuple(t.movedim(-1, dim) if keepdim else t.squeeze(-1) for t in picked)  # type: ignore[return-value]


@decomposes(aten.argmax.default, aten.argmin.default)
def arg_of_scalar(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor | NotImplementedType:
    return NotImplemented if x.dim() else torch.zeros_like(x, dtype=torch.int64)


# --- scans


@decomposes(*facts.family(Fact.SCANS))
def scan_of_little(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor | NotImplementedType:
    """A scan of a scalar or of an empty tensor."""
    dtype = dtype or (x.dtype if x.is_floating_point() or x.is_complex() else torch.int64)
    return x.to(dtype, copy=True) if not x.dim() or not x.numel() else NotImplemented


@decomposes(aten.cumsum.default)
def sums(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor | NotImplementedType:
    """torch-mlir crashes if the sums have the dtype of bytes. The sums of 32 bits have the same lowest 8 bits."""
    if dtype in (torch.uint8, torch.int8) and x.dim() and x.numel():
        return x.to(dtype).cumsum(dim, dtype=torch.int32).to(dtype)
    return scan_of_little(x, dim, dtype=dtype)


def _scan(parts: tuple[Tensor, ...], dim: int, combine: Combine) -> tuple[Tensor, ...]:
    """A scan along a dimension, by combining the last 1, 2, 4, ... elements. `combine` takes the earlier parts first,
    then the later ones. For an empty tensor, eager PyTorch does not look at the dimension."""
    if not parts[0].numel():
        return parts
    size, reach = parts[0].shape[dim], 1
    while reach < size:
        earlier = (p.narrow(dim, 0, size - reach) for p in parts)
        later = (p.narrow(dim, reach, size - reach) for p in parts)
        heads = (p.narrow(dim, 0, reach) for p in parts)
        parts = tuple(torch.cat(both, dim) for both in zip(heads, combine(*earlier, *later), strict=True))
        reach *= 2
    return parts


def _choose(wins: Callable[[Tensor, Tensor], Tensor]) -> Combine:
    """The later of two elements if it is larger (or smaller) or NaN, otherwise the earlier; with its position."""

    def combine(x: Tensor, i: Tensor, y: Tensor, j: Tensor) -> tuple[Tensor, Tensor]:
        later = wins(y, x) | (y != y) if y.is_floating_point() else wins(y, x)
        return torch.where(later, y, x), torch.where(later, j, i)

    return combine


_larger = _choose(torch.ge)
_smaller = _choose(torch.le)


def _with_positions(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    dim %= x.dim()
    count = torch.arange(x.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x.dim())])
    return x, count.expand(x.shape)


@along(aten.cummax.default)
def cummax(x: Tensor, dim: int) -> tuple[Tensor, ...]:
    return _scan(_with_positions(x, dim), dim, _larger)


@along(aten.cummin.default)
def cummin(x: Tensor, dim: int) -> tuple[Tensor, ...]:
    return _scan(_with_positions(x, dim), dim, _smaller)


def _add_exponents(x: Tensor, y: Tensor) -> tuple[Tensor]:
    """log(e^x + e^y), also for infinities."""
    high, low = torch.maximum(x, y), torch.minimum(x, y)
    return (high + torch.log1p(torch.exp(torch.where(high == low, 0, low - high))),)


@decomposes(aten.logcumsumexp.default)
@pw_cast_for_opmath
def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    return _scan((x + 0.0,), dim, _add_exponents)[0] if x.dim() else x.clone()  # eager PyTorch adds to 0.0
