"""How many parts a number of units is split into."""

from __future__ import annotations

import math


def shares(count: int, most: int) -> int:
    """The number of parts, at most `most`, if `count` units are split so that all parts except the last one are equal.

    Example: 24 units on up to 16 cores are 12 parts of two.
    """
    return math.ceil(count / math.ceil(count / most))


def even(count: int, most: int) -> int:
    """The largest number of equal parts of `count` units, at most `most`."""
    return max(parts for parts in range(1, most + 1) if count % parts == 0)
