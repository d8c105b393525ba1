"""Elementary functions of complex numbers, in real functions of both parts.

They use formulas for sums of angles, such as sin(a + bi) = sin a cosh b + i cos a sinh b. The forms are chosen so that
nothing cancels near zero, and nothing overflows before the result does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.complex_pairs.arithmetic import (
    LARGE,
    _both,
    absolute,
    angle,
    div,
    exp,
    log,
    mul,
    reciprocal,
    times_exp,
)
from tt_torch.dynamo.complex_pairs.pairs import RULES, Operand, Pair
from tt_torch.dynamo.types import Function

aten = torch.ops.aten
FLAT = 20.0  # from here on, the hyperbolic tangent of a float64 is 1


def _of_pairs(function: Callable[[Pair], Pair]) -> Function:
    """A rule for complex operands only."""

    def rule(x: Pair | Tensor) -> Pair | NotImplementedType:
        return function(x) if isinstance(x, Pair) else NotImplemented

    return rule


def _hyperbolic(a: Tensor, c: Tensor, *, odd: bool) -> Tensor:
    """sinh(a) * c if `odd`, otherwise cosh(a) * c, for c between -1 and 1. For large |a|, it is half an exponential."""
    large = a.abs() > LARGE
    near, far = torch.where(large, 0, a), 0.5 * times_exp(a.abs(), c)
    if odd:
        return torch.where(large, torch.sign(a) * far, torch.sinh(near) * c)
    return torch.where(large, far, torch.cosh(near) * c)


def sinh(x: Pair) -> Pair:
    return Pair(_hyperbolic(x.re, torch.cos(x.im), odd=True), _hyperbolic(x.re, torch.sin(x.im), odd=False))


def cosh(x: Pair) -> Pair:
    return Pair(_hyperbolic(x.re, torch.cos(x.im), odd=False), _hyperbolic(x.re, torch.sin(x.im), odd=True))


def tanh(x: Pair) -> Pair:
    """(sinh a cosh a + i sin b cos b) / (sinh^2 a + cos^2 b). For large |a|, its imaginary part is
    4 sin b cos b e^(-2|a|)."""
    flat, product = x.re.abs() > FLAT, torch.sin(x.im) * torch.cos(x.im)
    re = torch.where(flat, 0, x.re)
    grown = torch.sinh(re)
    size = grown * grown + torch.cos(x.im) ** 2
    near = Pair(grown * torch.cosh(re) / size, product / size)
    far = Pair(torch.sign(x.re), 4 * product * torch.exp(-2 * x.re.abs()))
    return Pair(torch.where(flat, far.re, near.re), torch.where(flat, far.im, near.im))


def _turned(function: Callable[[Pair], Pair]) -> Callable[[Pair], Pair]:
    """-i f(ix), which turns sinh into sin, and tanh into tan."""

    def turned(x: Pair) -> Pair:
        y = function(Pair(-x.im, x.re))
        return Pair(y.im, -y.re)

    return turned


def cos(x: Pair) -> Pair:
    return cosh(Pair(-x.im, x.re))


def expm1(x: Pair) -> Pair:
    half = torch.sin(x.im / 2)
    re = torch.expm1(x.re) * torch.cos(x.im) - 2 * half * half
    return Pair(re, torch.exp(x.re) * torch.sin(x.im))


def log1p(x: Pair) -> Pair:
    """Near zero, |1 + z|^2 - 1 = a (2 + a) + b^2 has the digits that |1 + z| loses."""
    moved = Pair(x.re + 1, x.im)
    small = 0.5 * torch.log1p(x.re * (2 + x.re) + x.im * x.im)
    re = torch.where(x.re.abs().maximum(x.im.abs()) < 0.5, small, torch.log(absolute(moved)))
    return Pair(re, angle(moved))


def sqrt(x: Pair) -> Pair:
    """With w = sqrt((|a| + |z|) / 2), the root is w + i b / 2w for a >= 0. Otherwise its real part is |b| / 2w, and its
    imaginary part is w with the sign of b. Both parts of z are divided by 8 first, so that |a| + |z| does not overflow.
    An infinite b makes both parts of the root infinite."""
    a, b = x.re / 8, x.im / 8
    w = 2 * torch.sqrt(a.abs() + torch.hypot(a, b))
    other = torch.where(w == 0, 0, x.im.abs() / (2 * torch.where(w == 0, 1, w)))
    right, infinite = a >= 0, x.im.isinf()
    re, im = torch.where(right, w, other), torch.where(right, other, w)
    return Pair(torch.where(infinite, math.inf, re), torch.copysign(torch.where(infinite, math.inf, im), x.im))


def sigmoid(x: Pair) -> Pair:
    """1 / (1 + e^-z) for a >= 0, otherwise e^z / (1 + e^z)."""
    right = x.re >= 0
    y = exp(Pair(-x.re.abs(), torch.where(right, -x.im, x.im)))
    over = Pair(torch.where(right, 1, y.re), torch.where(right, 0, y.im))
    return div(over, Pair(1 + y.re, y.im))


@RULES(aten.pow.Tensor_Tensor, aten.pow.Tensor_Scalar, aten.pow.Scalar)
def power(x: Operand, y: Operand) -> Pair | NotImplementedType:
    """Products for the exponents 2 and 3, as in eager PyTorch, otherwise e^(y log x). A power of zero is 1 for the
    exponent 0, and 0 for an exponent with a positive real part. Otherwise it is NaN."""

    if isinstance(y, int | float) and y in (2, 3):
        return mul(x, x) if y == 2 else mul(mul(x, x), x)

    def compute(x: Pair, y: Pair) -> Pair:
        none = (x.re == 0) & (x.im == 0)
        of_others = exp(mul(y, log(Pair(torch.where(none, 1, x.re), x.im))))
        unknown = torch.where(y.re > 0, 0, torch.nan)
        nothing = (y.re == 0) & (y.im == 0)
        re = torch.where(none, torch.where(nothing, 1, unknown), of_others.re)
        return Pair(re, torch.where(none, torch.where(nothing, 0, unknown), of_others.im))

    return _both(x, y, compute)


for _op, _function in {
    aten.cos.default: cos,
    aten.cosh.default: cosh,
    aten.expm1.default: expm1,
    aten.log1p.default: log1p,
    aten.rsqrt.default: lambda x: reciprocal(sqrt(x)),
    aten.sigmoid.default: sigmoid,
    aten.sin.default: _turned(sinh),
    aten.sinh.default: sinh,
    aten.sqrt.default: sqrt,
    aten.tan.default: _turned(tanh),
    aten.tanh.default: tanh,
}.items():
    RULES(_op)(_of_pairs(_function))
