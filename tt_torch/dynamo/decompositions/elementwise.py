"""Element-wise functions."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._decomp.decompositions import pw_cast_for_int_to_real, pw_cast_for_opmath

from tt_torch.dynamo.decompositions.registry import decomposes

aten = torch.ops.aten


@decomposes(aten.sinh.default)
@pw_cast_for_int_to_real
@pw_cast_for_opmath
def sinh(x: Tensor) -> Tensor:
    grown = torch.expm1(x)  # exact near zero, where e^x - e^-x cancels
    return 0.5 * (grown + grown / (grown + 1))


@decomposes(aten.cosh.default)
@pw_cast_for_int_to_real
@pw_cast_for_opmath
def cosh(x: Tensor) -> Tensor:
    return 0.5 * (torch.exp(x) + torch.exp(-x))


@decomposes(aten.atanh.default)
@pw_cast_for_int_to_real
@pw_cast_for_opmath
def atanh(x: Tensor) -> Tensor:
    return 0.5 * (torch.log1p(x) - torch.log1p(-x))


@decomposes(aten.acosh.default)
@pw_cast_for_int_to_real
@pw_cast_for_opmath
def acosh(x: Tensor) -> Tensor:
    return torch.log(x + torch.sqrt(x - 1) * torch.sqrt(x + 1))


@decomposes(aten.hypot.default)
@pw_cast_for_opmath
def hypot(x: Tensor, y: Tensor) -> Tensor:
    """Scaled by the larger one, so that squares do not overflow."""
    high, low = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
    ratio = low / torch.where(high == 0, 1, high)
    return high * torch.sqrt(1 + ratio * ratio)


@decomposes(aten.fmax.default)
def fmax(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x != x, y, torch.where(y != y, x, torch.maximum(x, y)))


@decomposes(aten.fmin.default)
def fmin(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x != x, y, torch.where(y != y, x, torch.minimum(x, y)))


@decomposes(aten.copysign.Tensor)
@pw_cast_for_int_to_real
def copysign(x: Tensor, sign: Tensor) -> Tensor:
    """A zero's sign shows in its reciprocal."""
    negative = (sign < 0) | ((sign == 0) & (1 / sign < 0))
    return torch.where(negative, -x.abs(), x.abs())


@decomposes(aten.__lshift__.Scalar, aten.bitwise_left_shift.Tensor_Scalar)
def shift_left(x: Tensor, bits: int) -> Tensor:
    return x * (1 << bits)


@decomposes(aten.__rshift__.Scalar, aten.bitwise_right_shift.Tensor_Scalar)
def shift_right(x: Tensor, bits: int) -> Tensor:
    """Arithmetic: towards minus infinity."""
    return torch.div(x, 1 << bits, rounding_mode="floor")
