"""Orthogonal polynomials, whose degree may differ from element to element.

All follow recurrences (DLMF 18.9) with one step per degree. The device has no loops, so the steps are unrolled, and
each element keeps the value at its degree. For degrees above the last step:
- Chebyshev's polynomials are trigonometric and hyperbolic functions (DLMF 18.5.2).
- Hermite's H leave the range of float32, so the result is NaN, as in eager.
- Laguerre's and Legendre's have no form here, so they are decomposed only if the degree is known.
- The same holds for Hermite's He: near their zeros, eager's values depend on its fused multiply-adds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.chebyshev import special
from tt_torch.dynamo.types import Argument

aten = torch.ops.aten


@dataclass(frozen=True)
class Family:
    """p_0 = 1, p_1 = first(x), and p_{k+1} = following(k, x, p_k, p_{k-1})."""

    first: Callable[[Tensor], Tensor]
    following: Callable[[int, Tensor, Tensor, Tensor], Tensor]
    steps: int = 64
    beyond: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None  # of x, the degree and p_1


def _parity(n: Tensor) -> Tensor:
    """(-1)^(n - 1)."""
    return 4 * (n / 2 - torch.floor(n / 2)) - 1


def _chebyshev_u(x: Tensor, n: Tensor, parity: Tensor) -> Tensor:
    """U_{n-1}: sin(n t) / sin(t) for x = cos(t), and its hyperbolic form beyond -1 and 1."""
    size = x.abs()
    sign = torch.where(x < 0, parity, 1)
    angle, hyperbolic = torch.acos(x), torch.acosh(size)
    wide = sign * torch.sinh(n * hyperbolic) / torch.sinh(hyperbolic)
    return torch.where(size < 1, torch.sin(n * angle) / torch.sin(angle), wide)


def _chebyshev_of_degree(x: Tensor, n: Tensor, p: Tensor) -> Tensor:
    """p U_{n-1} - U_{n-2}, where p is the polynomial of degree 1. At -1 and 1, both are near n, so their difference is
    written out. The parity of n - 1 is not computed from n - 1, which may be n in float32."""
    parity = _parity(n)
    product, before = p * _chebyshev_u(x, n, parity), _chebyshev_u(x, n - 1, -parity)
    value = torch.where(before.isinf(), product, product - before)
    at_ends = torch.where(x < 0, parity * ((p + 1) * n - 1), (p - 1) * n + 1)
    return torch.where(x.abs() == 1, at_ends, value)


def _chebyshev_beyond(x: Tensor, n: Tensor, p: Tensor) -> Tensor:
    """As eager's recurrence, which subtracts two infinities two degrees after the first one."""
    value, before = _chebyshev_of_degree(x, n, p), _chebyshev_of_degree(x, n - 2, p)
    return torch.where((x.abs() > 1) & before.isinf(), math.nan, value)


def _chebyshev(first: Callable[[Tensor], Tensor]) -> Family:
    """The four kinds differ only in p_1: p_n = p_1 U_{n-1} - U_{n-2}."""
    return Family(
        first,
        lambda k, x, p, before: 2 * x * p - before,
        steps=32,
        beyond=_chebyshev_beyond,
    )


def _undefined(x: Tensor, n: Tensor, p: Tensor) -> Tensor:
    return torch.full_like(x, math.nan)


CHEBYSHEV = {
    "t": _chebyshev(lambda x: x),
    "u": _chebyshev(lambda x: 2 * x),
    "v": _chebyshev(lambda x: 2 * x - 1),
    "w": _chebyshev(lambda x: 2 * x + 1),
}
FAMILIES = {f"chebyshev_polynomial_{kind}": family for kind, family in CHEBYSHEV.items()} | {
    "hermite_polynomial_h": Family(lambda x: 2 * x, lambda k, x, p, before: 2 * x * p - 2 * k * before, 64, _undefined),
    "hermite_polynomial_he": Family(lambda x: x, lambda k, x, p, before: x * p - k * before),
    "laguerre_polynomial_l": Family(
        lambda x: 1 - x, lambda k, x, p, before: ((2 * k + (1 - x)) * p - k * before) / (k + 1)
    ),
    "legendre_polynomial_p": Family(lambda x: x, lambda k, x, p, before: ((2 * k + 1) * x * p - k * before) / (k + 1)),
}


def _of_degree(family: Family, x: Tensor, n: int) -> Tensor | NotImplementedType:
    if n < 1:
        return torch.full_like(x, 1.0 if n == 0 else 0.0)
    if n > family.steps:
        return NotImplemented
    before, p = torch.ones_like(x), family.first(x)
    for k in range(1, n):
        before, p = p, family.following(k, x, p, before)
    return p


def _evaluate(family: Family, shifted: bool, x: Argument, n: Argument) -> Tensor | NotImplementedType:
    """The polynomial of degree `n`, which is truncated to an integer. Negative degrees give 0, and so do degrees beyond
    int64."""
    x = x if isinstance(x, Tensor) else torch.full_like(n, x)
    x = 2 * x - 1 if shifted else x
    if not isinstance(n, Tensor):
        return _of_degree(family, x, int(n))
    if family.beyond is None:
        return NotImplemented
    x, n = torch.broadcast_tensors(x, torch.trunc(n))
    before, p = torch.ones_like(x), family.first(x)
    value = torch.where(n < 1, 1, p)
    for k in range(1, family.steps):
        before, p = p, family.following(k, x, p, before)
        value = torch.where(n > k, p, value)
    value = torch.where(n > family.steps, family.beyond(x, n, family.first(x)), value)
    return torch.where((n >= 0) & (n < 2.0**63), value, 0)


def _register(name: str, family: Family, shifted: bool) -> None:
    op = getattr(aten, f"special_{name}")
    special(op.default, op.x_scalar, op.n_scalar)(partial(_evaluate, family, shifted))


for _name, _family in FAMILIES.items():
    _register(_name, _family, shifted=False)
for _kind, _family in CHEBYSHEV.items():
    _register(f"shifted_chebyshev_polynomial_{_kind}", _family, shifted=True)
