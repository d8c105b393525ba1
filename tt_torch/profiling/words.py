"""Numbers of a profile as a reader sees them."""

from __future__ import annotations

from tt_torch.profiling.groups import Spread


def duration(ns: float) -> str:
    """A time with three significant digits: 1234567 is "1.23 ms"."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(ns) >= size:
            return f"{_three(ns / size)} {unit}"
    return f"{_three(ns)} ns"


def size(count: float) -> str:
    """A number of bytes with three significant digits: 1234567 is "1.23 MB"."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(count) >= scale:
            return f"{_three(count / scale)} {unit}"
    return f"{count:.0f} B"


def quartiles(spread: Spread) -> str:
    """ "1.20 – 1.35 ms", with two units if they differ."""
    low, high = duration(spread.low), duration(spread.high)
    number, unit = low.split()
    return f"{number if high.endswith(f' {unit}') else low} – {high}"


def factor(old: float, new: float) -> str:
    """How a time compares with an earlier one: "2.00 times as fast", "1.50 times as slow", "the same"."""
    if not old or not new:
        return "the same" if old == new else "not comparable"
    ratio = old / new
    if abs(ratio - 1) < 0.005:
        return "the same"
    return f"{ratio:.2f} times as fast" if ratio > 1 else f"{1 / ratio:.2f} times as slow"


def _three(value: float) -> str:
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f}"
