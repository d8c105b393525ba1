"""Removes PyTorch's Python kernels of ops that we decompose ourselves, while a graph is captured.

With these kernels, AOTAutograd decomposes `upsample_bilinear2d` into look-ups of single elements before it asks our
table. PyTorch has one table of them for the whole process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from tt_torch.dynamo.decompositions import DECOMPOSITIONS
from tt_torch.dynamo.decompositions.registry import TAKEN
from tt_torch.torch_private.ops import Kernels, OpOverload, has_early_kernels, put_back, take_early_kernels

_lock = threading.Lock()
_captures = 0
_aside: dict[OpOverload, Kernels] = {}


@cache
def overloads() -> list[OpOverload]:
    """The overloads that we decompose ourselves and for which PyTorch has Python kernels."""
    packets = {op.overloadpacket for op in DECOMPOSITIONS if op not in TAKEN}
    every = [getattr(packet, name) for packet in packets for name in packet.overloads()]
    return [op for op in every if has_early_kernels(op)]


@contextmanager
def put_aside() -> Iterator[None]:
    """Removes the kernels and restores them. With several threads, the first one removes and the last one restores."""
    global _captures
    with _lock:
        _captures += 1
        if _captures == 1:
            _aside.update({op: take_early_kernels(op) for op in overloads()})
    try:
        yield
    finally:
        with _lock:
            _captures -= 1
            if not _captures:
                for op, kernels in _aside.items():
                    put_back(op, kernels)
