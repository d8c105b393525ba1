"""The gamma function's family. DLMF is the Digital Library of Mathematical Functions, https://dlmf.nist.gov."""

from __future__ import annotations

import math
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.chebyshev import Fit, horner, series, special
from tt_torch.dynamo.types import Argument

aten = torch.ops.aten

# lgamma / ((x - 1) (x - 2)) around its two zeros.
_BETWEEN = Fit(lambda x: torch.lgamma(x) / ((x - 1) * (x - 2)), 1, 3, 13)


def _from_stirling(x: Tensor) -> Tensor:
    """The error of Stirling's formula, times x, as a function of 1 / x."""
    return (torch.lgamma(1 / x) - _stirling(1 / x)) / x


_BEYOND = Fit(_from_stirling, 1e-3, 1 / 3, 7)


def _stirling(x: Tensor) -> Tensor:
    """Stirling's formula: DLMF 5.11.1 without its series."""
    return (x - 0.5) * torch.log(x) - x + 0.5 * math.log(2 * math.pi)


@special(aten.lgamma.default)
def lgamma(x: Tensor) -> Tensor:
    """Stirling's formula from 3 on, a polynomial from 1 to 3, otherwise the recurrence and DLMF 5.5.3 (reflection)."""
    y = torch.where(x < 0, 1 - x, x)
    near = torch.where(y < 1, y + 1, y)
    # The sum of zero and the product is 0.0 at 1, and not -0.0.
    low = torch.where(y < 1, -torch.log(y), 0) + (near - 1) * (near - 2) * _BETWEEN(near)
    positive = torch.where(y < 3, low, _stirling(y) + _BEYOND(1 / y) / y)
    reflected = math.log(math.pi) - torch.log(torch.sin(math.pi * (x - torch.round(x))).abs()) - positive
    pole = (x < 0) & (x == torch.round(x))  # both parts of the reflection may be infinite there
    return torch.where(pole | (x.abs() == math.inf), math.inf, torch.where(x < 0, reflected, positive))


@special(aten.digamma.default)
def digamma(x: Tensor) -> Tensor:
    """DLMF 5.11.2 (asymptotic) after 6 steps of the recurrence 5.5.2; below zero by the reflection 5.5.4."""
    y = torch.where(x < 0, 1 - x, x)
    z = y + 6
    inverse = 1 / (z * z)
    tail = inverse * horner(inverse, [1 / 12, -1 / 120, 1 / 252, -1 / 240])
    positive = torch.log(z) - 0.5 / z - tail - (1 / series(y, 6)).sum(0)
    reflected = positive - math.pi / torch.tan(math.pi * (x - torch.round(x)))
    value = torch.where(x < 0, torch.where(x == torch.round(x), math.nan, reflected), positive)
    return torch.where(x == 0, -1 / x, value)  # infinity with the sign of the zero


# B_2j / (2j)!, the weights of DLMF 25.11.7.
_EULER_MACLAURIN = [1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000]


def _hurwitz(s: Tensor | int, q: Tensor) -> Tensor:
    """The terms of zeta(s, q) for s > 1 and q >= 0, along a new first dimension: 9 terms of its sum, and the rest by
    DLMF 25.11.7 (Euler and Maclaurin)."""
    w = q + 9
    square = w * w
    rest: Tensor | float = _EULER_MACLAURIN[-1]
    for j in range(len(_EULER_MACLAURIN) - 1, 0, -1):
        rest = _EULER_MACLAURIN[j - 1] + rest * ((s + 2 * j - 1) * (s + 2 * j)) / square
    power = w ** (1 - s)  # w**-s is zero from 1e23 on for s = 2
    last = torch.where(power == 0, 0, power * (1 / (s - 1) + (0.5 + s / w * rest) / w))  # the sum may be infinite
    return torch.cat([series(q, 9) ** -s, last.unsqueeze(0)])


def _is_pole(q: Tensor) -> Tensor:
    return (q <= 0) & (q == torch.floor(q))


def _zeta(s: Tensor | int, q: Tensor, sign: Tensor | int) -> Tensor:
    """zeta(s, q) for s > 1, where (-1)^s is `sign`. If q is negative, the terms with a negative base are summed
    separately. With the distances f and g of q from the integers below and above it, their sum is `sign` times
    zeta(s, g) - zeta(s, 1 - q). The sums are added term by term, because the first terms may cancel."""
    below = q < 0
    f, g = q - torch.floor(q), torch.ceil(q) - q
    ahead, behind, beyond = _hurwitz(s, torch.stack([torch.where(below, f, q), g, 1 - q.clamp(max=0)])).unbind(1)
    value = torch.where(below, ahead + sign * behind - sign * beyond, ahead).sum(0)
    # Eager's sum of powers has no number for a base of infinity.
    value = torch.where(q == math.inf, math.nan, value)
    return torch.where(_is_pole(q), math.inf, value)


@special(aten.special_zeta.default, aten.special_zeta.self_scalar, aten.special_zeta.other_scalar)
def zeta(s: Argument, q: Argument) -> Tensor:
    """The Hurwitz zeta function, with eager's values outside of its domain. `s` or `q` may be a number."""
    s = s if isinstance(s, Tensor) else torch.full_like(q, s)
    q = q if isinstance(q, Tensor) else torch.full_like(s, q)
    s, q = torch.broadcast_tensors(s, q)
    whole = s == torch.floor(s)
    sign = 1 - 4 * (s / 2 - torch.floor(s / 2))
    value = _zeta(torch.where(s > 1, s, 2), q, sign)
    value = torch.where((q < 0) & (q != torch.floor(q)) & ~whole, math.nan, value)
    value = torch.where(s > 1, value, math.nan)
    # From here on, a product of s with its successors leaves float64 in eager's kernel, which multiplies it by zero.
    value = torch.where(s > 2.5256835e13, torch.where(q < 1, math.inf, torch.where(q == 1, 1, math.nan)), value)
    return torch.where((s == 1) | ((s != s) & _is_pole(q)), math.inf, value)


def _trigamma(x: Tensor) -> Tensor:
    """DLMF 5.15.6 below 0.5. Close to a pole the sine decides, so it is computed from the argument that eager takes."""
    y = torch.where(x < 0.5, 1 - x, x)
    value = torch.where(x == math.inf, 0, _hurwitz(2, y).sum(0))
    sine = torch.sin(math.pi * x)
    return torch.where(x < 0.5, math.pi**2 / (sine * sine) - value, value)


@special(aten.polygamma.default)
def polygamma(n: int, x: Tensor) -> Tensor | NotImplementedType:
    """The derivative of order `n` of digamma, by DLMF 25.11.12."""
    if n == 0:
        return digamma(x)
    if n == 1:
        return _trigamma(x)
    if n > 33:  # the factorial is beyond float32
        return NotImplemented
    sign = (-1) ** (n + 1)
    return sign * float(math.factorial(n)) * _zeta(n + 1, x, sign)


# --- incomplete gamma functions -------------------------------------------------------------------

# Functions of the relative distance d = (x - a) / a: (d - log(1 + d)) / d^2, and the first two coefficients of DLMF
# 8.12.9.
_NARROW, _WIDE = -0.5, 1.0


def _curvature(d: Tensor) -> Tensor:
    return (d - torch.log1p(d)) / (d * d)


def _eta(d: Tensor) -> Tensor:
    return d * torch.sqrt(2 * _curvature(d))


_CURVATURE = Fit(_curvature, _NARROW, _WIDE, 13)
_C0 = Fit(lambda d: 1 / d - 1 / _eta(d), _NARROW, _WIDE, 11)
_C1 = Fit(lambda d: 1 / _eta(d) ** 3 - 1 / d**3 - 1 / d**2 - 1 / (12 * d), _NARROW, _WIDE, 7)
_LARGE = 40


def _weight(a: Tensor, x: Tensor, d: Tensor) -> Tensor:
    """x^a e^-x / gamma(a + 1), for large a without the cancellation between its factors."""
    small = a * torch.log(x) - x - lgamma(a + 1)
    decay = torch.where((d > _NARROW) & (d < _WIDE), d * d * _CURVATURE(d), d - torch.log1p(d))
    large = -a * decay - _BEYOND(1 / a) / a - 0.5 * torch.log(2 * math.pi * a)
    return torch.exp(torch.where(a < 3, small, large))


def _incomplete(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """P and Q of DLMF 8.2.4 for finite positive arguments.

    Below a + 1, P comes from the series 8.7.1. Above it, Q comes from the integral 8.6.5 over t = x + u, by 28 nodes of
    the double exponential rule (Takahasi and Mori 1974). For large a near x, both come from the uniform expansion
    8.12.3, 8.12.4 and 8.12.7.
    """
    d = (x - a) / a
    weight = _weight(a, x, d)
    lower = weight * (1 + torch.cumprod(x / series(a + 1, 48), 0).sum(0))
    t = -2.9 + 7.1 / 27 * torch.arange(28).reshape([28] + [1] * x.dim())
    nodes = torch.exp(t - torch.exp(-t))
    rates = 7.1 / 27 * nodes * (1 + torch.exp(-t))
    upper = weight * a / x * (rates * torch.exp((a - 1) * torch.log1p(nodes / x) - nodes)).sum(0)
    p = torch.where(x < a + 1, lower, 1 - upper)
    q = torch.where(x < a + 1, 1 - lower, upper)
    root = d * torch.sqrt(a * _CURVATURE(d))  # eta times the root of a / 2
    rest = torch.exp(-root * root) * torch.rsqrt(2 * math.pi * a) * (_C0(d) + _C1(d) / a)
    uniform = (a > _LARGE) & (d > _NARROW) & (d < _WIDE)
    return torch.where(uniform, 0.5 * torch.erfc(-root) - rest, p), torch.where(
        uniform, 0.5 * torch.erfc(root) + rest, q
    )


def _at_borders(value: Tensor, a: Tensor, x: Tensor, at_zero: float) -> Tensor:
    """Takes eager's values if an argument is 0, infinite or negative; `at_zero` is the value at x = 0."""
    value = torch.where(x == math.inf, 1 - at_zero, value)
    value = torch.where(a == math.inf, torch.where(x == math.inf, math.nan, at_zero), value)
    value = torch.where(x == 0, at_zero, value)
    value = torch.where(a == 0, torch.where(x > 0, 1 - at_zero, math.nan), value)
    return torch.where((a < 0) | (x < 0), math.nan, value)


@special(aten.igamma.default)
def igamma(a: Tensor, x: Tensor) -> Tensor:
    a, x = torch.broadcast_tensors(a, x)
    return _at_borders(_incomplete(a, x)[0], a, x, 0.0)


@special(aten.igammac.default)
def igammac(a: Tensor, x: Tensor) -> Tensor:
    a, x = torch.broadcast_tensors(a, x)
    return _at_borders(_incomplete(a, x)[1], a, x, 1.0)
