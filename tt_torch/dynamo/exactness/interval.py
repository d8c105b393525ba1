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
        return other.low <= self.low and self.high <= other.high

    def __or__(self, other: Interval) -> Interval:
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def plus(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def times(self, other: Interval) -> Interval:
        return hull(*(a * b for a in self for b in other))


ANYTHING = Interval(-math.inf, math.inf)
ZERO, BIT = Interval(0, 0), Interval(0, 1)


def hull(*values: float) -> Interval:
    if any(math.isnan(v) for v in values):  # infinity times zero
        return ANYTHING
    return Interval(min(values), max(values))


def of_dtype(dtype: torch.dtype) -> Interval:
    if dtype is torch.bool:
        return BIT
    if dtype.is_floating_point or dtype.is_complex:
        return ANYTHING
    return Interval(torch.iinfo(dtype).min, torch.iinfo(dtype).max)


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
