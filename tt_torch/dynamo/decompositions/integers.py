"""Division, remainders, shifts and bits. They are exact for 32-bit integers, and right for infinities and zeros."""

from __future__ import annotations

from collections.abc import Callable
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import DECOMPOSITIONS, NARROW, decomposes
from tt_torch.dynamo.scalars import number_in, wrapped
from tt_torch.dynamo.types import Argument, Function, Scalar
from tt_torch.torch_private.ops import OpOverload

aten = torch.ops.aten


@decomposes(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(x: Tensor, y: Tensor | float) -> Tensor:
    """fmod from the device's remainder, which has the sign of the divisor."""
    if isinstance(y, Tensor) or not x.is_floating_point():
        x, y = torch.broadcast_tensors(*_promoted(x, y))
    if not x.is_floating_point():
        rest = torch.remainder(x, y)
        return torch.where((rest != 0) & ((x < 0) != (y < 0)), rest - y, rest)
    rest = torch.remainder(x.abs(), y.abs() if isinstance(y, Tensor) else abs(y))
    return torch.where(rest == x.abs(), x, torch.where(x < 0, -rest, rest))


@decomposes(aten.div.Tensor_mode, aten.div.Scalar_mode, aten.floor_divide.default, aten.floor_divide.Scalar)
def divide(
    x: Tensor | Scalar, y: Tensor | Scalar, *, rounding_mode: str | None = "floor"
) -> Tensor | NotImplementedType:
    """Integer division without torch-mlir's quotient in float32, which is not exact. Zeros keep their sign."""
    if not isinstance(x, Tensor):  # PyTorch knows the quotient of two numbers, which may be a size
        return NotImplemented
    if rounding_mode is None:
        return x / y
    by_one = not isinstance(y, Tensor) or y.numel() == 1
    if by_one and x.dtype in NARROW and torch.result_type(x, y) is x.dtype:  # eager takes one number in float32
        y = y.to(torch.float32) if isinstance(y, Tensor) else y
        return divide(x.to(torch.float32), y, rounding_mode=rounding_mode).to(x.dtype)
    by_another_number = not isinstance(y, Tensor) and y != -1
    x, y = _promoted(x, y)
    if rounding_mode == "trunc" and x.is_floating_point():
        return torch.trunc(x / y)
    if rounding_mode != "floor":
        return NotImplemented
    if not x.is_floating_point():
        if by_another_number or not x.dtype.is_signed:  # an unsigned -1 is the largest number
            return _floor(x, y)
        negates = y == -1  # on a CPU, "trunc" of the smallest integer by -1 ends the process
        return torch.where(negates, -x, _floor(x, torch.where(negates, 1, y)))
    rest = torch.fmod(x, y)
    quotient = (x - rest) / y
    quotient = torch.where((rest != 0) & ((y < 0) != (rest < 0)), quotient - 1, quotient)
    whole = torch.floor(quotient)
    whole = torch.where(quotient - whole > 0.5, whole + 1, whole)
    whole = torch.where(quotient == 0, 0 * (x / y), whole)
    return torch.where((y == 0) | (x.isfinite() & (x / y).isinf()), x / y, whole)


def _floor(x: Tensor, y: Tensor) -> Tensor:
    """The quotients of integers, which are rounded down."""
    down = (torch.remainder(x, y) != 0) & ((x < 0) != (y < 0))
    return torch.div(x, y, rounding_mode="trunc") - down.to(x.dtype)


def _promoted(x: Tensor | Scalar, y: Tensor | Scalar) -> list[Tensor]:
    """The operands in the dtype of the result. Numbers become tensors, also sizes of the program."""
    dtype = torch.result_type(x, y)
    return [v.to(dtype) if isinstance(v, Tensor) else torch.full((), number_in(v, dtype), dtype=dtype) for v in (x, y)]


@decomposes(aten.__lshift__.Scalar, aten.bitwise_left_shift.Tensor_Scalar)
def shift_left(x: Tensor, bits: int) -> Tensor:
    """The shift as a multiplication. A shift by the width, by more, or by a negative number of bits gives zero. PyTorch
    first converts the number of bits to the dtype: 256 becomes 0 for uint8."""
    dtype = torch.result_type(x, bits)
    bits = wrapped(bits, dtype)
    return x.to(dtype) * (wrapped(1 << bits, dtype) if 0 <= bits < torch.iinfo(dtype).bits else 0)


def as_int32(op: OpOverload) -> Function:
    """Computes in int32: torch-mlir uses the smallest value of int8 for uint8, and booleans have no smallest value."""

    def compute(x: Tensor, *args: Argument, **kwargs: Argument) -> Tensor | tuple[Tensor, ...] | NotImplementedType:
        if x.dtype not in (torch.uint8, torch.bool):
            return NotImplemented
        found = op(x.to(torch.int32), *args, **kwargs)
        narrow = [
            v.to(x.dtype) if v.dtype is torch.int32 else v for v in ([found] if isinstance(found, Tensor) else found)
        ]
        return narrow[0] if isinstance(found, Tensor) else tuple(narrow)

    return compute


for op in [aten.amax.default, aten.amin.default, aten.aminmax.default, aten.max.default, aten.min.default]:
    decomposes(op)(as_int32(op))
for op in [aten.argmax.default, aten.argmin.default]:
    decomposes(op)(as_int32(op))


def _tensor_form(op: OpOverload) -> Callable[[Tensor, int], Tensor]:
    return lambda x, number: op(*_promoted(x, number))


for scalar, op in [
    (aten.bitwise_or.Scalar, aten.bitwise_or.Tensor),
    (aten.bitwise_xor.Scalar, aten.bitwise_xor.Tensor),
    (aten.__rshift__.Scalar, aten.bitwise_right_shift.Tensor),
    (aten.bitwise_right_shift.Tensor_Scalar, aten.bitwise_right_shift.Tensor),
]:
    decomposes(scalar)(_tensor_form(op))


def _of_one_shape(op: OpOverload) -> Callable[[Tensor, Tensor], Tensor | NotImplementedType]:
    """Broadcasts the operands: torch-mlir aborts if they have different shapes.

    A tensor without dimensions counts less in type promotion. So the operands are promoted before they are broadcast.
    """

    def compute(x: Tensor, y: Tensor) -> Tensor | NotImplementedType:
        alike = x.shape == y.shape and x.dtype == y.dtype
        return NotImplemented if alike else op(*torch.broadcast_tensors(*_promoted(x, y)))

    return compute


for op in (aten.bitwise_left_shift.Tensor, aten.bitwise_right_shift.Tensor):
    decomposes(op)(_of_one_shape(op))
DECOMPOSITIONS[aten.__lshift__.Tensor] = aten.bitwise_left_shift.Tensor
DECOMPOSITIONS[aten.__rshift__.Tensor] = aten.bitwise_right_shift.Tensor


@decomposes(aten.abs.default)
def absolute(x: Tensor) -> Tensor | NotImplementedType:
    """torch-mlir makes an invalid op of bytes, which have no sign."""
    return x.clone() if x.dtype is torch.uint8 else NotImplemented


@decomposes(aten.any.default, aten.any.dim)
def any_of_bytes(x: Tensor, *args: object, **kwargs: object) -> Tensor | NotImplementedType:
    """Computes `any` of uint8, which gives 0 or 1 in uint8. The device's maximum would give the largest byte."""
    if x.dtype is not torch.uint8:
        return NotImplemented
    return torch.any(x != 0, *args, **kwargs).to(torch.uint8)  # type: ignore[call-overload]


@decomposes(aten.all.default, aten.all.dim)
def all_of_bytes(x: Tensor, *args: object, **kwargs: object) -> Tensor | NotImplementedType:
    """Computes `all` of uint8, which gives 0 or 1 in uint8. The device would combine the bits of the bytes."""
    if x.dtype is not torch.uint8:
        return NotImplemented
    return torch.all(x != 0, *args, **kwargs).to(torch.uint8)  # type: ignore[call-overload]


@decomposes(aten.isinf.default)
def isinf(x: Tensor) -> Tensor | NotImplementedType:
    """torch-mlir asks for the absolute values of bytes and booleans, which StableHLO does not have."""
    return torch.zeros_like(x, dtype=torch.bool) if x.dtype in (torch.uint8, torch.int8, torch.bool) else NotImplemented
