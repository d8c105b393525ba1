"""Element-wise functions."""

from __future__ import annotations

import math
from types import NotImplementedType

import numpy as np
import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import NARROW, decomposes
from tt_torch.dynamo.types import Function, Scalar
from tt_torch.torch_private import tracing
from tt_torch.torch_private.ops import OpOverload
from tt_torch.torch_private.tracing import pw_cast_for_int_to_real, pw_cast_for_opmath

aten = torch.ops.aten


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.float32) if x.dtype in NARROW else x


@decomposes(aten.deg2rad.default)
@pw_cast_for_int_to_real
def deg2rad(x: Tensor) -> Tensor:
    """One product, as in eager. torch-mlir would multiply and divide, which rounds twice."""
    return x * (math.pi / 180)


@decomposes(aten.rad2deg.default)
@pw_cast_for_int_to_real
def rad2deg(x: Tensor) -> Tensor:
    """One product, as in eager."""
    return x * (180 / math.pi)


@decomposes(aten.sinh.default)
@pw_cast_for_int_to_real
@pw_cast_for_opmath
def sinh(x: Tensor) -> Tensor | NotImplementedType:
    """Computed for the absolute value: below zero, e^x - 1 is close to -1, so the digits of e^x would be lost."""
    if x.is_complex():
        return NotImplemented
    grown = torch.expm1(x.abs())  # exact near zero, where e^x - e^-x cancels
    half = 0.5 * (grown + torch.where(grown > 1, 1 - 1 / (grown + 1), grown / (grown + 1)))
    return torch.where(x == 0, x, torch.where(x < 0, -half, half))


@decomposes(aten.cosh.default)
@pw_cast_for_int_to_real
@pw_cast_for_opmath
def cosh(x: Tensor) -> Tensor | NotImplementedType:
    return NotImplemented if x.is_complex() else 0.5 * (torch.exp(x) + torch.exp(-x))


@decomposes(aten.atanh.default)
@pw_cast_for_int_to_real
@pw_cast_for_opmath
def atanh(x: Tensor) -> Tensor:
    return 0.5 * (torch.log1p(x) - torch.log1p(-x))


@decomposes(aten.acosh.default)
@pw_cast_for_int_to_real
@pw_cast_for_opmath
def acosh(x: Tensor) -> Tensor | NotImplementedType:
    if x.is_complex():
        return NotImplemented
    large = x > 1e18  # where x + sqrt(x^2 - 1) is twice x, which may overflow
    return torch.where(large, torch.log(x) + math.log(2), torch.log(x + torch.sqrt(x - 1) * torch.sqrt(x + 1)))


@decomposes(aten.hypot.default)
@pw_cast_for_opmath
def hypot(x: Tensor, y: Tensor) -> Tensor:
    """Scaled by the larger operand, so that squares do not overflow."""
    high, low = torch.maximum(x.abs(), y.abs()), torch.minimum(x.abs(), y.abs())
    ratio = low / torch.where(high == 0, 1, high)
    infinite = (x.abs() == math.inf) | (y.abs() == math.inf)  # even if the other one is NaN
    return torch.where(infinite, math.inf, high * torch.sqrt(1 + ratio * ratio))


@decomposes(aten.fmax.default)
def fmax(x: Tensor, y: Tensor) -> Tensor:
    return torch.where((x != x) | (y > x), y, x)


@decomposes(aten.fmin.default)
def fmin(x: Tensor, y: Tensor) -> Tensor:
    return torch.where((x != x) | (y < x), y, x)


@decomposes(aten.copysign.Tensor)
@pw_cast_for_int_to_real
def copysign(x: Tensor, sign: Tensor) -> Tensor:
    """copysign; the reciprocal of a zero shows its sign."""
    negative = (sign < 0) | ((sign == 0) & (1 / sign < 0))
    return torch.where(negative, -x.abs(), x.abs())


@decomposes(aten.signbit.default)
def signbit(x: Tensor) -> Tensor | NotImplementedType:
    """MLIR's constant folder reads a true i1 as -1, so a boolean must not be compared with 0."""
    return torch.zeros_like(x) if x.dtype is torch.bool else NotImplemented


@decomposes(aten.trunc.default)
def trunc(x: Tensor) -> Tensor:
    """Rounds towards zero; -0.5 becomes -0.0."""
    return torch.where(x < 0, torch.ceil(x), torch.floor(x)) if x.is_floating_point() else x.clone()


@decomposes(aten.frac.default)
def frac(x: Tensor) -> Tensor:
    return x - torch.trunc(x)


@decomposes(aten.pow.Tensor_Scalar)
def power(x: Tensor, exponent: float) -> Tensor | NotImplementedType:
    """A power of 0.5 is `sqrt`, which gives NaN for -inf.

    An odd exponent beyond 2^24 would become an even float32, so the sign is computed separately. A boolean power of
    booleans is boolean in eager PyTorch, but int64 when PyTorch traces it.
    """
    if x.dtype is torch.bool and isinstance(exponent, bool):
        return x.clone() if exponent else torch.ones_like(x)
    if x.dtype in (torch.float32, torch.float64) and abs(exponent) > 2**24 and float(exponent) % 2 == 1:
        return torch.copysign(torch.pow(x.abs(), float(np.float32(exponent))), x)
    if not x.is_floating_point() or exponent not in (0.5, -0.5):
        return NotImplemented
    return torch.sqrt(x) if exponent > 0 else torch.rsqrt(x)


@decomposes(aten.fmod.Scalar)
def fmod(x: Tensor, divisor: float) -> Tensor:
    return torch.fmod(x, torch.full((), divisor, dtype=torch.result_type(x, divisor)))


@decomposes(tracing.fma)
def fma(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """Dynamo writes addcmul and similar ops in this form if the factor is a tensor or depends on one."""
    return x * y + z


@decomposes(aten.add.Tensor)
def add(x: Tensor, y: Tensor, *, alpha: float = 1) -> Tensor | NotImplementedType:
    """A number that changes from call to call, such as a learning rate, becomes a tensor operand. As in eager, the
    number is converted to the dtype of narrow floats, and the sum is rounded once. A number that this dtype does not
    have is refused later, with the user's line."""
    dtype, is_known = torch.result_type(x, y), isinstance(alpha, (int, float))
    refused = is_known and dtype.is_floating_point and torch.finfo(dtype).max < abs(alpha) < math.inf
    if dtype in NARROW and not refused and not (is_known and alpha == 1):
        x, y, factor = (v.to(dtype).to(torch.float32) for v in (x, y, torch.full((), alpha, dtype=dtype)))
        return (x + y * factor).to(dtype)
    return x + y * alpha if isinstance(alpha, torch.SymFloat) else NotImplemented


@decomposes(aten.sub.Tensor)
def subtract(x: Tensor, y: Tensor, *, alpha: float = 1) -> Tensor | NotImplementedType:
    return torch.add(x, y, alpha=-alpha) if torch.result_type(x, y) in NARROW and alpha != 1 else NotImplemented


@decomposes(aten.lerp.Tensor, aten.lerp.Scalar)
@pw_cast_for_opmath
def lerp(x: Tensor, end: Tensor, weight: Tensor | Scalar) -> Tensor:
    """Computed from the nearer end, as in ATen, and rounded once."""
    if isinstance(weight, Tensor):
        return torch.where(weight.abs() < 0.5, x + weight * (end - x), end - (end - x) * (1 - weight))
    return x + weight * (end - x) if abs(weight) < 0.5 else end - (end - x) * (1 - weight)


@decomposes(aten.native_group_norm.default)
def native_group_norm(x: Tensor, *arguments: Tensor | int) -> tuple[Tensor, Tensor, Tensor] | NotImplementedType:
    """Computed in float32 and rounded once; torch-mlir's form rounds at each step."""
    if x.dtype not in (torch.bfloat16, torch.float16):
        return NotImplemented
    wide = [a.float() if isinstance(a, Tensor) else a for a in (x, *arguments)]
    return tuple(result.to(x.dtype) for result in aten.native_group_norm(*wide))


@decomposes(aten.heaviside.default)
def heaviside(x: Tensor, at_zero: Tensor) -> Tensor:
    return torch.where(x == 0, at_zero, (x > 0).to(x.dtype))


@decomposes(aten.threshold.default)
def threshold(x: Tensor, least: float, value: float) -> Tensor:
    """NaN stays NaN, because it is not at most `least`. As in eager, integers are compared with an integer, and narrow
    floats in float32."""
    if not x.is_floating_point():
        least, value = int(least), int(value)
    return torch.where(_wide(x) <= least, value, x).to(x.dtype)


@decomposes(aten.threshold_backward.default)
def threshold_backward(gradient: Tensor, x: Tensor, least: float) -> Tensor:
    """Narrow floats are compared in float32, as in eager."""
    return torch.where(_wide(x) <= least, torch.zeros((), dtype=gradient.dtype), gradient)


def _of_integers(op: OpOverload) -> Function:
    def compute(x: Tensor) -> Tensor | NotImplementedType:
        real = x.is_floating_point() or x.is_complex()
        return NotImplemented if real else op(x.to(torch.get_default_dtype()))

    return compute


for _op in (aten.erf.default, aten.erfc.default, aten.reciprocal.default):
    decomposes(_op)(_of_integers(_op))


@decomposes(aten.angle.default)
def angle(x: Tensor) -> Tensor | NotImplementedType:
    """The angle of real numbers; complex numbers are pairs here."""
    if x.is_complex():
        return NotImplemented
    x = x if x.is_floating_point() else x.to(torch.get_default_dtype())
    return torch.where(x < 0, math.pi, torch.where(x.isnan(), x, torch.zeros_like(x)))


@decomposes(aten.gelu.default)
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor | NotImplementedType:
    """The form with tanh in float32: in narrow floats, the roundings of its steps would add up."""
    if approximate != "tanh" or x.dtype not in NARROW:
        return NotImplemented
    return aten.gelu(x.to(torch.float32), approximate=approximate).to(x.dtype)


@decomposes(aten.addcdiv.default)
@pw_cast_for_opmath
def addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: Scalar = 1) -> Tensor:
    """The factor is multiplied first, as in eager: the quotient of `a` and `b` alone may be infinite."""
    return x + (a if value == 1 else a * value) / b


@decomposes(aten.round.decimals)
def round_to_decimals(x: Tensor, *, decimals: int) -> Tensor | NotImplementedType:
    """Narrow floats are rounded in float32: in bfloat16, 0.3496 times ten is 3.5."""
    return aten.round(x.to(torch.float32), decimals=decimals).to(x.dtype) if x.dtype in NARROW else NotImplemented


@decomposes(aten.softshrink.default)
def softshrink(x: Tensor, least: float = 0.5) -> Tensor:
    """Narrow floats are shrunk in float32 and rounded once, as in eager: 0.3008 by 0.3 is 0.0008, and not 0. Zeros
    keep their sign, and NaN stays NaN."""
    wide = _wide(x)
    return torch.where(wide.abs() > least, wide - wide.sign() * least, wide * 0).to(x.dtype)


@decomposes(aten.softshrink_backward.default)
def softshrink_backward(gradient: Tensor, x: Tensor, least: float) -> Tensor:
    """Eager's kernel rounds `least` to the dtype of `x`, unlike the kernel of `softshrink`."""
    return torch.where(x.abs() <= least, torch.zeros((), dtype=gradient.dtype), gradient)


@decomposes(aten.softplus.default)
def softplus(x: Tensor, beta: float = 1, threshold: float = 20) -> Tensor | NotImplementedType:
    """Narrow floats take the two numbers in float32, and their result is rounded once, as in eager."""
    if x.dtype not in NARROW:
        return NotImplemented
    return aten.softplus(x.to(torch.float32), beta, threshold).to(x.dtype)


def _in_float32(op: OpOverload) -> None:
    """An op of two floats whose narrow results are rounded once, at the end. The operands may have several dtypes."""

    def wide(x: Tensor, y: Tensor) -> Tensor | NotImplementedType:
        dtype = torch.result_type(x, y)
        if dtype not in NARROW:
            return NotImplemented
        return op(x.to(torch.float32), y.to(torch.float32)).to(dtype)

    decomposes(op)(wide)


_in_float32(aten.logaddexp.default)


@decomposes(aten.logaddexp2.default)
def logaddexp2(x: Tensor, y: Tensor) -> Tensor | NotImplementedType:
    """log2(2^x + 2^y) by log1p, as in eager's kernel: 1 + 2^-30 is 1 in float32, and its logarithm would be 0."""
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        return NotImplemented
    x, y = (_wide(value.to(dtype)) for value in (x, y))
    less = torch.log1p(torch.exp2(-(x - y).abs())) * (1 / math.log(2))
    return torch.where(x == y, x + 1, torch.maximum(x, y) + less).to(dtype)  # two equal infinities have no difference


@decomposes(aten.clamp.default)
def clamp(x: Tensor, low: float | None = None, high: float | None = None) -> Tensor | NotImplementedType:
    """Booleans as bounds become integers. For booleans, torch-mlir would allocate memory without end."""
    bounds = [int(v) if isinstance(v, bool) else v for v in (low, high)]
    return aten.clamp(x, *bounds) if any(isinstance(v, bool) for v in (low, high)) else NotImplemented


@decomposes(aten.elu.default)
def elu(x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """A zero takes the linear part, as in eager's kernel: a negative `alpha` in the other part changes its sign."""
    wide = _wide(x)
    result = torch.where(wide < 0, torch.expm1(wide * input_scale) * (alpha * scale), wide * scale)
    return result.to(x.dtype)


@decomposes(aten.celu.default)
def celu(x: Tensor, alpha: float = 1) -> Tensor:
    """torch-mlir's own form adds both parts, so an infinite `alpha` would spoil the linear one."""
    return elu(x, alpha, 1, 1 / alpha)


@decomposes(aten.hardtanh.default)
def hardtanh(x: Tensor, min_val: Scalar = -1, max_val: Scalar = 1) -> Tensor | NotImplementedType:
    """torch-mlir's own form loses the sign of a bound of -0.0."""
    return x.clamp(min_val, max_val) if x.is_floating_point() else NotImplemented
