"""Converts Python numbers as eager PyTorch does when they meet tensors in an op."""

from __future__ import annotations

import torch

from tt_torch.dynamo.types import Scalar


def number_in(number: Scalar, dtype: torch.dtype) -> Scalar:
    """The number as a value of `dtype`, by the conversion of PyTorch: an integer keeps its lowest bits.

    300 becomes 44 in int8, and 2**31 becomes -2**31 in int32. In bool, any number but zero is True. For a float dtype,
    integers of more than 32 bits become floats; other numbers stay as they are, and are rounded later.
    """
    if dtype is torch.bool:
        return bool(number)
    if not isinstance(number, int):
        return number
    if dtype.is_floating_point or dtype.is_complex:
        return number if abs(number) < 2**31 else float(number)
    return wrapped(number, dtype)


def wrapped(number: int, dtype: torch.dtype) -> int:
    """The integer of `dtype` with the same lowest bits."""
    limits = torch.iinfo(dtype)
    return (int(number) - limits.min) % (1 << limits.bits) + limits.min
