"""Creation, conversion and arithmetic of complex numbers, in real numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import NotImplementedType
from typing import TypeVar

import torch
from torch import Tensor

from tt_torch.dynamo.complex_pairs.pairs import REAL, RULES, Operand, Pair, pair, stacked, unstacked
from tt_torch.dynamo.types import Argument, Function
from tt_torch.torch_private.ops import OpOverload

aten = torch.ops.aten
T = TypeVar("T")


# --- creation and conversion


@RULES(aten.complex.default)
def complex_(re: Tensor, im: Tensor) -> Pair:
    return Pair(*torch.broadcast_tensors(re, im))


@RULES(aten.polar.default)
def polar(magnitude: Tensor, angle: Tensor) -> Pair:
    return Pair(magnitude * torch.cos(angle), magnitude * torch.sin(angle))


RULES(aten.view_as_complex.default, aten.view_as_complex_copy.default)(unstacked)
RULES(aten.view_as_real.default, aten.view_as_real_copy.default)(stacked)


@RULES(aten.view.default)
def view(x: Pair | Tensor, size: Sequence[int]) -> Pair | Tensor:
    """A reshape. The formula of an op may give a tensor other strides than the op, and these may not allow a view."""
    return x.each(lambda part: part.reshape(size)) if isinstance(x, Pair) else x.reshape(size)


@RULES(aten._to_copy.default)
def to_copy(
    x: Pair | Tensor, *, dtype: torch.dtype | None = None, **options: Argument
) -> Pair | Tensor | NotImplementedType:
    if isinstance(x, Pair):
        if dtype is None or dtype in REAL:
            return x.each(lambda part: aten._to_copy(part, dtype=dtype and REAL[dtype], **options))
        return aten._to_copy(x.re, dtype=dtype, **options)
    if dtype not in REAL:
        return NotImplemented
    real = aten._to_copy(x, dtype=REAL[dtype], **options)
    return Pair(real, torch.zeros_like(real))


@RULES(torch.ops.prims.convert_element_type.default)
def convert_element_type(x: Pair | Tensor, dtype: torch.dtype) -> Pair | Tensor | NotImplementedType:
    return to_copy(x, dtype=dtype)


@RULES(aten.full.default, aten.full_like.default)
def full(
    size: Sequence[int] | Tensor | Pair, value: complex, *, dtype: torch.dtype | None = None, **options: Argument
) -> Pair | NotImplementedType:
    """A tensor of a size, or of the form of another tensor."""
    if isinstance(size, Pair):
        dtype, size = dtype or size.dtype, size.re
    if dtype not in REAL and not isinstance(value, complex):
        return NotImplemented
    number = complex(value)
    shape = size.shape if isinstance(size, Tensor) else size
    real = REAL[dtype] if dtype in REAL else torch.get_default_dtype()
    return Pair(torch.full(shape, number.real, dtype=real), torch.full(shape, number.imag, dtype=real))


def _filled(value: float) -> Function:
    def create(
        size: Sequence[int] | Tensor | Pair, *, dtype: torch.dtype | None = None, **options: Argument
    ) -> Pair | NotImplementedType:
        if dtype not in REAL and not isinstance(size, Pair):
            return NotImplemented
        return full(size, complex(value), dtype=dtype)

    return create


RULES(aten.zeros.default, aten.zeros_like.default)(_filled(0))
RULES(aten.ones.default, aten.ones_like.default)(_filled(1))


@RULES(aten.scalar_tensor.default)
def scalar_tensor(
    value: complex, *, dtype: torch.dtype | None = None, **options: Argument
) -> Pair | NotImplementedType:
    return full((), value, dtype=dtype)


# --- parts


@RULES(aten._conj.default, aten._conj_physical.default, aten.conj_physical.default)
def conj(x: Pair | Tensor | complex) -> Pair | Tensor | complex:
    """The conjugate, also of a Python number: the gradient of `z * 2j` has the conjugate of 2j."""
    if isinstance(x, Pair):
        return Pair(x.re, -x.im)
    return x if isinstance(x, Tensor) else x.conjugate()


@RULES(aten.abs.default)
def absolute(x: Pair | Tensor) -> Tensor | NotImplementedType:
    return torch.hypot(x.re, x.im) if isinstance(x, Pair) else NotImplemented


@RULES(aten.angle.default)
def angle(x: Pair | Tensor) -> Tensor | NotImplementedType:
    return torch.atan2(x.im, x.re) if isinstance(x, Pair) else NotImplemented


@RULES(aten.sgn.default)
def sgn(x: Pair | Tensor) -> Pair | NotImplementedType:
    if not isinstance(x, Pair):
        return NotImplemented
    size = absolute(x)
    return x.each(lambda part: torch.where(size == 0, 0, part / size))


@RULES(aten.isnan.default)
def isnan(x: Pair | Tensor) -> Tensor | NotImplementedType:
    return torch.isnan(x.re) | torch.isnan(x.im) if isinstance(x, Pair) else NotImplemented


@RULES(aten.eq.Tensor, aten.eq.Scalar)
def eq(x: Operand, y: Operand) -> Tensor | NotImplementedType:
    return _both(x, y, lambda x, y: (x.re == y.re) & (x.im == y.im))


@RULES(aten.ne.Tensor, aten.ne.Scalar)
def ne(x: Operand, y: Operand) -> Tensor | NotImplementedType:
    return _both(x, y, lambda x, y: (x.re != y.re) | (x.im != y.im))


# --- arithmetic


def _both(x: Operand, y: Operand, compute: Callable[[Pair, Pair], T]) -> T | NotImplementedType:
    """A rule for two operands, at least one of which is complex. A complex scalar makes a real tensor complex."""
    if not any(isinstance(v, (Pair, complex)) for v in (x, y)):
        return NotImplemented
    tensors = [v for v in (x, y) if not isinstance(v, complex)]
    like = next((v for v in tensors if isinstance(v, Pair)), None)
    if like is None:
        real = next(v for v in tensors if isinstance(v, Tensor))
        real = real if real.is_floating_point() else real.to(torch.get_default_dtype())
        like = Pair(real, real)
    return compute(pair(x, like), pair(y, like))


def _scaled(x: Operand, factor: complex) -> Operand:
    if factor == 1:
        return x
    if isinstance(x, Pair) or (isinstance(x, Tensor) and isinstance(factor, complex)):
        return mul(x, factor)
    return x * factor


@RULES(aten.add.Tensor, aten.add.Scalar)
def add(x: Operand, y: Operand, alpha: complex = 1) -> Pair | NotImplementedType:
    return _both(x, _scaled(y, alpha), lambda x, y: Pair(x.re + y.re, x.im + y.im))


@RULES(aten.sub.Tensor, aten.sub.Scalar)
def sub(x: Operand, y: Operand, alpha: complex = 1) -> Pair | NotImplementedType:
    return _both(x, _scaled(y, alpha), lambda x, y: Pair(x.re - y.re, x.im - y.im))


def _product(x: Pair, y: Pair, multiply: Callable[[Tensor, Tensor], Tensor] = torch.mul) -> Pair:
    re = multiply(x.re, y.re) - multiply(x.im, y.im)
    return Pair(re, multiply(x.re, y.im) + multiply(x.im, y.re))


@RULES(aten.mul.Tensor, aten.mul.Scalar)
def mul(x: Operand, y: Operand) -> Pair | NotImplementedType:
    """The product. As in eager PyTorch, a real factor is a complex number whose imaginary part is 0. This decides signs
    of zeros, and an infinite part makes the other part NaN."""
    return _both(x, y, _product)


@RULES(aten.div.Tensor, aten.div.Scalar)
def div(x: Operand, y: Operand) -> Pair | NotImplementedType:
    """The quotient by R. L. Smith, Algorithm 116 (1962), which scales by the larger part of the divisor."""
    if isinstance(x, Pair) and not isinstance(y, (Pair, complex)):
        return x.each(lambda part: part / y)

    def divide(x: Pair, y: Pair) -> Pair:
        swap = y.im.abs() > y.re.abs()
        large, small = torch.where(swap, y.im, y.re), torch.where(swap, y.re, y.im)
        ratio = small / large
        scale = 1 / (large + small * ratio)
        re = torch.where(swap, x.re * ratio + x.im, x.re + x.im * ratio)
        im = torch.where(swap, x.im * ratio - x.re, x.im - x.re * ratio)
        return Pair(re * scale, im * scale)

    return _both(x, y, divide)


@RULES(aten.reciprocal.default)
def reciprocal(x: Pair | Tensor) -> Pair | NotImplementedType:
    return div(1.0, x) if isinstance(x, Pair) else NotImplemented


@RULES(aten.exp.default)
def exp(x: Pair | Tensor) -> Pair | NotImplementedType:
    if not isinstance(x, Pair):
        return NotImplemented
    return Pair(times_exp(x.re, torch.cos(x.im)), times_exp(x.re, torch.sin(x.im)))


LARGE = 60.0  # beyond it, exp(a) is computed as the square of exp(a / 2), so that it does not overflow too early


def times_exp(a: Tensor, c: Tensor) -> Tensor:
    """exp(a) * c for c between -1 and 1, also where only exp(a) overflows: the imaginary part of exp(100 + 0i) is 0."""
    large = a > LARGE
    half = torch.exp(torch.where(large, a, 0).clamp(max=170) / 2)
    return torch.where(large, half * c * half, torch.exp(a) * c)


@RULES(aten.log.default)
def log(x: Pair | Tensor) -> Pair | NotImplementedType:
    return Pair(torch.log(absolute(x)), angle(x)) if isinstance(x, Pair) else NotImplemented


# --- products of matrices


def _matrices(multiply: Callable[[Tensor, Tensor], Tensor]) -> Function:
    return lambda x, y: _both(x, y, lambda x, y: _product(x, y, multiply))


_PRODUCTS: dict[OpOverload, Callable[[Tensor, Tensor], Tensor]] = {
    aten.mm.default: torch.mm,
    aten.bmm.default: torch.bmm,
    aten.mv.default: torch.mv,
    aten.dot.default: torch.dot,
}
for _op, _multiply in _PRODUCTS.items():
    RULES(_op)(_matrices(_multiply))
