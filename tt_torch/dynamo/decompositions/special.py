"""Error functions, normal quantiles, and functions of a float's parts."""

from __future__ import annotations

import math
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.chebyshev import Fit, special
from tt_torch.dynamo.decompositions.registry import decomposes

aten = torch.ops.aten


def _erfcx_map(t: Tensor) -> Tensor:
    x = 3.75 * (1 + t) / (1 - t)
    return torch.special.erfcx(x) * (1 + 2 * x)


# A fit in the variable (x - 3.75) / (x + 3.75), as in Shepherd and Laframboise, Mathematics of Computation 36 (1981).
_ERFCX = Fit(_erfcx_map, -1, 1 - 1e-6, 12)


@special(aten.special_erfcx.default)
def erfcx(x: Tensor) -> Tensor:
    """erfcx; negative arguments by DLMF 7.4.3."""
    y = x.abs()
    positive = _ERFCX(1 - 7.5 / (y + 3.75)) / (1 + 2 * y)
    return torch.where(x < 0, 2 * torch.exp(x * x) - positive, positive)


def _erfinv_ratio(w: Tensor) -> Tensor:
    x = torch.sqrt(-torch.expm1(-w))
    return torch.erfinv(x) / x


# The first fit gives erfinv(x) / x from w = -log(1 - x^2), and the second one from the root of w. Source: Giles, GPU
# Computing Gems Jade (2011), chapter 10.
_ERFINV = Fit(_erfinv_ratio, 1e-9, 5, 10)
_ERFINV_TAIL = Fit(lambda r: _erfinv_ratio(r * r), 5**0.5, 4.2, 10)


@special(aten.erfinv.default)
def erfinv(x: Tensor) -> Tensor:
    w = -torch.log((1 - x) * (1 + x))
    value = x * torch.where(w < 5, _ERFINV(w), _ERFINV_TAIL(torch.sqrt(w)))
    return torch.where(x.abs() == 1, x * math.inf, value)


def _quantile_ratio(square: Tensor) -> Tensor:
    x = torch.sqrt(square)
    return torch.special.ndtri(0.5 + x) / x


def _quantile_rest(u: Tensor) -> Tensor:
    return torch.special.ndtri(torch.exp(-0.5 / (u * u))) + 1 / u


# The normal quantile: near the median, divided by the distance to it; in the tail, without its leading term
# z = sqrt(-2 log p).
_CENTRAL = Fit(_quantile_ratio, 1e-9, 0.14, 9)
_TAIL = Fit(_quantile_rest, 1 / 14.5, 1 / 1.99, 14)


@special(aten.special_ndtri.default)
def ndtri(p: Tensor) -> Tensor:
    """The normal quantile; in the tail it is a function of z, as in Abramowitz and Stegun 26.2.23."""
    distance = p - 0.5
    low = torch.minimum(p, 1 - p)
    z = torch.sqrt(-2 * torch.log(low))
    tail = (z - _TAIL(1 / z)) * torch.sign(distance)
    return torch.where(low > math.exp(-2), distance * _CENTRAL(distance * distance), tail)


@special(aten.logit.default)
def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """logit in float32: PyTorch's decomposition rounds between its steps in bfloat16."""
    x = x if eps is None else x.clamp(eps, 1 - eps)
    return torch.log(x / (1 - x))


# --- parts of a float ---------------------------------------------------------------------------


@decomposes(aten.frexp.Tensor)
def frexp(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mantissa and exponent. The exponent comes from log2, which may be wrong by one because of rounding, and is
    corrected. The mantissa is scaled in two steps, so that the scale of very large and very small floats stays in
    range."""
    value = x.to(torch.float32)
    finite = (value != 0) & (value.abs() < math.inf)
    exponent = torch.where(finite, torch.floor(torch.log2(torch.where(finite, value.abs(), 1))) + 1, 0)
    half = torch.floor(exponent / 2)
    mantissa = value * torch.exp2(-half) * torch.exp2(half - exponent)
    high, low = finite & (mantissa.abs() >= 1), finite & (mantissa.abs() < 0.5)
    mantissa = torch.where(high, mantissa / 2, torch.where(low, mantissa * 2, mantissa))
    exponent = torch.where(high, exponent + 1, torch.where(low, exponent - 1, exponent))
    return mantissa.to(x.dtype), exponent.to(torch.int32)


@decomposes(aten.ldexp.Tensor)
def ldexp(x: Tensor, exponent: Tensor) -> Tensor:
    """`x * 2**exponent`. As in eager PyTorch, an integer exponent of a float scales in steps, because the power alone
    may leave float32 although the product does not. Each step multiplies by a power that float32 has. Exponents are
    limited to 300, because every product in float32 is already 0 or infinite there."""
    if not x.dtype.is_floating_point or exponent.dtype.is_floating_point:
        dtype = exponent.dtype if exponent.dtype.is_floating_point else torch.float32
        return x * torch.pow(torch.full((), 2.0, dtype=dtype), exponent)
    exponent = exponent.to(torch.int32).clamp(-300, 300)
    third = torch.div(exponent, 3, rounding_mode="trunc")
    value, step = x.to(torch.promote_types(x.dtype, torch.float32)), torch.exp2(third.to(torch.float32))
    return (value * step * step * torch.exp2((exponent - 2 * third).to(torch.float32))).to(x.dtype)


@decomposes(aten.nextafter.default)
def nextafter(x: Tensor, y: Tensor) -> Tensor | NotImplementedType:
    """Adds a number whose sum rounds to the neighbour: Rump, Zimmermann, Boldo and Melquiond, BIT 49 (2009)."""
    dtype = torch.result_type(x, y)
    if dtype == torch.float64:  # its neighbours are not float32 numbers
        return NotImplemented
    parts = torch.finfo(dtype)
    unit, scale = parts.eps / 2, 2.0**50  # small numbers are scaled, so that steps are not denormal
    start, end = (v.to(torch.float32) for v in torch.broadcast_tensors(x, y))
    small = start.abs() < 2.0**-100
    size = torch.where(small, start.abs() * scale, start.abs())
    least = parts.smallest_normal * parts.eps
    step = torch.where(
        start.abs() < 2 * parts.smallest_normal, least * torch.where(small, scale, 1), size * (unit + 2 * unit**2)
    )
    grow = (start == 0) | ((end > start) == (start > 0))
    moved = torch.where(grow, size + step, size - step)
    moved = torch.where(small, moved / scale, torch.where(size == math.inf, parts.max, moved))
    value = torch.where(start == end, end, torch.where(start == 0, torch.sign(end), torch.sign(start)) * moved)
    return torch.where((start != start) | (end != end), math.nan, value).to(dtype)
