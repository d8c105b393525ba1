"""Converts bfloat16, which is the upper half of a float32. NumPy has no such type, so its bits are uint16."""

from __future__ import annotations

import numpy as np


def halves(values: np.ndarray) -> np.ndarray:
    """The upper halves of float32 values as uint16. This is exact for values that bfloat16 can represent."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def floats(bits: np.ndarray) -> np.ndarray:
    """The float32 values of bfloat16 bits (uint16)."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def rounded(value: np.float32) -> float:
    """The bfloat16 number that is nearest to a float32; of two equally near ones, the one whose last bit is 0."""
    if np.isnan(value):
        return float("nan")
    bits = int(value.view(np.uint32))
    bits += 0x7FFF + (bits >> 16 & 1)
    return float(np.uint32(bits & 0xFFFF0000).view(np.float32))
