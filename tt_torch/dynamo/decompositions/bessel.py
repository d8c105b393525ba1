"""Bessel and Airy functions. DLMF is the Digital Library of Mathematical Functions, https://dlmf.nist.gov.

Up to some argument, each function is a polynomial after its logarithm, pole and parity are separated (DLMF 10.2.2,
10.8, 10.25.2, 10.31). Beyond that, it is a polynomial in 1 / x times the leading term of its asymptotic expansion.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.chebyshev import Fit, horner, special

aten = torch.ops.aten
Function = Callable[[Tensor], Tensor]
known = torch.special


def _even(function: Function, high: float, degree: int) -> Fit:
    """An even function, as a function of the square of its argument."""
    return Fit(lambda square: function(torch.sqrt(square)), high * 1e-9, high, degree)


def _beyond(function: Function, high: float, degree: int) -> Fit:
    """A function that decreases like 1 / sqrt(x), without this factor, as a function of u = 1 / x."""
    return Fit(lambda u: function(1 / u) / torch.sqrt(u), 1e-6, high, degree)


# --- modified Bessel functions --------------------------------------------------------------------

_NEAR = {0: Fit(known.i0e, 0, 8, 16), 1: Fit(lambda x: known.i1e(x) / x, 1e-6, 8, 16)}
_FAR = {n: _beyond(f, 1 / 8, 6) for n, f in enumerate([known.i0e, known.i1e])}


def _scaled_i(n: int, x: Tensor) -> Tensor:
    """e^-|x| I_n(x); for |x| >= 8 by DLMF 10.40.1."""
    size = x.abs()
    value = torch.where(size < 8, _NEAR[n](size) * size**n, _FAR[n](1 / size) * torch.rsqrt(size))
    return torch.sign(x) * value if n else value


def _i(n: int, x: Tensor) -> Tensor:
    return torch.exp(x.abs()) * _scaled_i(n, x)


special(aten.special_i0e.default)(partial(_scaled_i, 0))
special(aten.special_i1e.default)(partial(_scaled_i, 1))
special(aten.i0.default, aten.special_modified_bessel_i0.default)(partial(_i, 0))
special(aten.special_i1.default, aten.special_modified_bessel_i1.default)(partial(_i, 1))

# Up to 1: I_n / x^n, and K_n without its logarithm and pole, divided by x^n.
_I_SMALL = {0: _even(known.i0, 1, 4), 1: _even(lambda x: known.i1(x) / x, 1, 4)}
_K_SMALL = {
    0: _even(lambda x: known.modified_bessel_k0(x) + torch.log(x) * known.i0(x), 1, 4),
    1: _even(lambda x: (known.modified_bessel_k1(x) - 1 / x - torch.log(x) * known.i1(x)) / x, 1, 4),
}
_K_FAR = {
    n: _beyond(f, 1, 11) for n, f in enumerate([known.scaled_modified_bessel_k0, known.scaled_modified_bessel_k1])
}


def _k(n: int, scaled: bool, x: Tensor) -> Tensor:
    """K_n by DLMF 10.31.1 and 10.31.2 up to 1, and by 10.40.2 beyond."""
    square = x * x
    log = torch.log(x) * _I_SMALL[n](square)
    small = x * (_K_SMALL[1](square) + log) + 1 / x if n else _K_SMALL[0](square) - log
    far = _K_FAR[n](1 / x) * torch.rsqrt(x)
    decay = torch.exp(-x)
    value = torch.where(x <= 1, small / decay, far) if scaled else torch.where(x <= 1, small, far * decay)
    return torch.where(x == 0, math.inf, value)


special(aten.special_modified_bessel_k0.default)(partial(_k, 0, False))
special(aten.special_modified_bessel_k1.default)(partial(_k, 1, False))
special(aten.special_scaled_modified_bessel_k0.default)(partial(_k, 0, True))
special(aten.special_scaled_modified_bessel_k1.default)(partial(_k, 1, True))

# --- Bessel functions -----------------------------------------------------------------------------

_J = {0: known.bessel_j0, 1: known.bessel_j1}
_Y = {0: known.bessel_y0, 1: known.bessel_y1}
_WAVY = 8
_J_SMALL = {0: _even(known.bessel_j0, _WAVY**2, 13), 1: _even(lambda x: known.bessel_j1(x) / x, _WAVY**2, 13)}
_Y_SMALL = {
    0: _even(lambda x: known.bessel_y0(x) - 2 / math.pi * torch.log(x) * known.bessel_j0(x), _WAVY**2, 13),
    1: _even(
        lambda x: (known.bessel_y1(x) - 2 / math.pi * (torch.log(x) * known.bessel_j1(x) - 1 / x)) / x, _WAVY**2, 13
    ),
}


def _phase(n: int, x: Tensor) -> Tensor:
    return x - (2 * n + 1) * math.pi / 4


def _in_phase(n: int, x: Tensor) -> Tensor:
    """P of DLMF 10.17.3: J = sqrt(2 / pi x) (P cos - Q sin), Y = sqrt(2 / pi x) (P sin + Q cos)."""
    at = _phase(n, x)
    return torch.sqrt(math.pi * x / 2) * (_J[n](x) * torch.cos(at) + _Y[n](x) * torch.sin(at))


def _off_phase(n: int, x: Tensor) -> Tensor:
    """x times Q of DLMF 10.17.3."""
    at = _phase(n, x)
    return x * torch.sqrt(math.pi * x / 2) * (_Y[n](x) * torch.cos(at) - _J[n](x) * torch.sin(at))


def _in_square(function: Callable[[int, Tensor], Tensor], n: int) -> Fit:
    """A fit of the function in the variable u = 1 / x^2."""
    return Fit(lambda u: function(n, torch.rsqrt(u)), 1e-6, 1 / _WAVY**2, 5)


_P = {n: _in_square(_in_phase, n) for n in (0, 1)}
_Q = {n: _in_square(_off_phase, n) for n in (0, 1)}


def _waves(n: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """J_n and Y_n beyond 8."""
    u, at = 1 / (x * x), _phase(n, x)
    p, q = _P[n](u), _Q[n](u) / x
    size = torch.rsqrt(x) * math.sqrt(2 / math.pi)
    return size * (p * torch.cos(at) - q * torch.sin(at)), size * (p * torch.sin(at) + q * torch.cos(at))


def _j(n: int, x: Tensor) -> Tensor:
    size = x.abs()
    small = _J_SMALL[n](x * x)
    value = torch.where(size < _WAVY, small * size if n else small, _waves(n, size)[0])
    return torch.sign(x) * value if n else value


def _y(n: int, x: Tensor) -> Tensor:
    square = x * x
    log, j, rest = torch.log(x), _J_SMALL[n](square), _Y_SMALL[n](square)
    small = x * rest + 2 / math.pi * (x * j * log - 1 / x) if n else rest + 2 / math.pi * j * log
    value = torch.where(x < _WAVY, small, _waves(n, x)[1])
    return torch.where(x == 0, -math.inf, torch.where(x < 0, math.nan, value))


special(aten.special_bessel_j0.default)(partial(_j, 0))
special(aten.special_bessel_j1.default)(partial(_j, 1))
special(aten.special_bessel_y0.default)(partial(_y, 0))
special(aten.special_bessel_y1.default)(partial(_y, 1))


@special(aten.special_spherical_bessel_j0.default)
def spherical_bessel_j0(x: Tensor) -> Tensor:
    """DLMF 10.49.3."""
    value = torch.sin(x) / torch.where(x == 0, 1, x)
    return torch.where(x.abs() == math.inf, 0, torch.where(x == 0, 1, value))


# --- Airy's function ------------------------------------------------------------------------------


def _decaying(u: Tensor) -> Tensor:
    x = (1.5 / u) ** (2 / 3)
    return known.airy_ai(x) * torch.exp(1 / u) * x**0.25


_AIRY_WAVY, _AIRY_DECAY = -6, 2
_AIRY_LEFT = Fit(known.airy_ai, _AIRY_WAVY, -2, 14)
_AIRY_RIGHT = Fit(known.airy_ai, -2, _AIRY_DECAY, 14)
_AIRY_FAR = Fit(_decaying, 1 / 100, 1 / 1.88, 9)
# u_k of DLMF 9.7.2.
_AIRY_SERIES = [math.gamma(3 * k + 0.5) / (54**k * math.factorial(k) * math.gamma(k + 0.5)) for k in range(14)]


@special(aten.special_airy_ai.default)
def airy_ai(x: Tensor) -> Tensor:
    """Ai(x) by DLMF 9.7.5 from 2 on, and by 9.7.9 below -6; a polynomial between them."""
    size = x.abs()
    root = torch.sqrt(size)
    zeta = 2 / 3 * size * root
    u = 1 / zeta
    scale = torch.rsqrt(root)
    signed = [c * (-1) ** (k // 2) for k, c in enumerate(_AIRY_SERIES)]
    p, q = horner(u * u, signed[::2]), u * horner(u * u, signed[1::2])
    at = zeta - math.pi / 4
    wave = scale * (torch.cos(at) * p + torch.sin(at) * q) / math.sqrt(math.pi)
    middle = torch.where(x < -2, _AIRY_LEFT(x), _AIRY_RIGHT(x))
    far = torch.where(zeta > 100, 0, scale * torch.exp(-zeta) * _AIRY_FAR(u))
    value = torch.where(x < _AIRY_WAVY, wave, torch.where(x < _AIRY_DECAY, middle, far))
    return torch.where(size == math.inf, math.nan, value)
