"""bfloat16, for which NumPy has no type: the upper half of a float32."""

from __future__ import annotations

import numpy as np


def halves(values: np.ndarray) -> np.ndarray:
    """The bits of values as uint16, the lower half of each float32 cut off: exact for what was bfloat16 before."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def floats(bits: np.ndarray) -> np.ndarray:
    """The values of bits, as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
