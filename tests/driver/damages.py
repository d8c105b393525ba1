"""Damages of a file: single bits that are wrong, and ends that are missing."""

from __future__ import annotations

import random
from collections.abc import Iterator


def flipped(data: bytes) -> Iterator[bytes]:
    """Copies of the file with one wrong bit each: in the first 40 bytes, in 150 random bytes, and in the last byte."""
    places = random.Random(0).choices(range(len(data)), k=150)
    for place in [*range(40), *places, len(data) - 1]:
        damaged = bytearray(data)
        damaged[place] ^= 1 << (place % 8)
        yield bytes(damaged)


def cut(data: bytes) -> Iterator[bytes]:
    """The file up to a place: nothing, parts of its header, half of it, and all but its last byte."""
    return (data[:length] for length in (0, 1, 8, 9, 100, len(data) // 2, len(data) - 1))
