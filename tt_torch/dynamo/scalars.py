"""Converts Python numbers as eager PyTorch does when they meet tensors in an op."""

from __future__ import annotations

from ctypes import c_float

import torch

from tt_torch.dynamo.types import Scalar


def number_in(number: Scalar, dtype: torch.dtype) -> Scalar:
    """The number as a value of `dtype`, as PyTorch converts it: an integer keeps its lowest bits.

    300 becomes 44 in int8, and 2**31 becomes -2**31 in int32. In bool, every nonzero number is True. For a float dtype,
    integers of more than 32 bits become floats, and numbers beyond float32 are infinite, except in float64. Other
    numbers stay as they are, and are rounded later.
    """
    if dtype is torch.bool:
        return bool(number)
    if not (dtype.is_floating_point or dtype.is_complex):
        return wrapped(number, dtype) if isinstance(number, int) else number
    if isinstance(number, complex) or abs(number) < 2**31:
        return number
    return float(number) if dtype in (torch.float64, torch.complex128) else c_float(number).value


def wrapped(number: int, dtype: torch.dtype) -> int:
    """The integer of `dtype` with the same lowest bits."""
    limits = torch.iinfo(dtype)
    return (int(number) - limits.min) % (1 << limits.bits) + limits.min
