"""Intervals of values, with Python's unbounded integers."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch


class Interval(NamedTuple):
    """All values from `low` to `high`, including both."""

    low: float
    high: float

    def within(self, other: Interval) -> bool:
        """1 .. 2 is within 0 .. 2."""
        return other.low <= self.low and self.high <= other.high

    def __or__(self, other: Interval) -> Interval:
        """The values of both, and all values between them: 0 .. 1 | 4 .. 5 is 0 .. 5."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def __neg__(self) -> Interval:
        """-(1 .. 2) is -2 .. -1."""
        return Interval(-self.high, -self.low)

    def plus(self, other: Interval) -> Interval:
        """0 .. 3 plus -1 .. 5 is -1 .. 8."""
        return Interval(self.low + other.low, self.high + other.high)

    def times(self, other: Interval) -> Interval:
        """-2 .. 3 times 4 .. 5 is -10 .. 15."""
        return hull(*(a * b for a in self for b in other))


ANYTHING = Interval(-math.inf, math.inf)
ZERO, BIT = Interval(0, 0), Interval(0, 1)

_INTEGERS = frozenset(
    (torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32, torch.int64)
)


def hull(*values: float) -> Interval:
    """The smallest interval with these values: 3, -1 and 2 give -1 .. 3. With NaN it is ANYTHING."""
    if any(math.isnan(v) for v in values):  # infinity times zero
        return ANYTHING
    return Interval(min(values), max(values))


def of_dtype(dtype: torch.dtype) -> Interval:
    """All values of a dtype: 0 .. 255 for uint8, ANYTHING for floats and for types of no numbers, such as `bits8`."""
    if dtype is torch.bool:
        return BIT
    return Interval(torch.iinfo(dtype).min, torch.iinfo(dtype).max) if dtype in _INTEGERS else ANYTHING


def of_values(x: torch.Tensor) -> Interval:
    """The interval of the values in a tensor."""
    if not x.numel() or x.is_complex():
        return of_dtype(x.dtype) if x.numel() else ZERO
    foreign = x.dtype in (torch.bool, torch.uint16, torch.uint32, torch.uint64)  # `aminmax` does not take them
    low, high = (v.item() for v in torch.aminmax(_as_signed(x) if foreign else x))
    return Interval(low, high) if math.isfinite(low) and math.isfinite(high) else ANYTHING


def _as_signed(x: torch.Tensor) -> torch.Tensor:
    """The tensor as int64. For uint64 numbers beyond int64, the result only shows that they are too large."""
    if x.dtype is torch.uint64:
        large = x.view(torch.int64) < 0
        return torch.where(large, torch.iinfo(torch.int64).max, x.view(torch.int64))
    return x.to(torch.int64)


def held(raw: Interval, dtype: torch.dtype) -> Interval:
    """The interval of these values in a tensor of a dtype: values that do not fit wrap around.

    0 .. 300 gives 0 .. 255 for uint8.
    """
    return raw if raw.within(of_dtype(dtype)) or dtype.is_floating_point else of_dtype(dtype)
