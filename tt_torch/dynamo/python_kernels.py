"""Kernels in Python that PyTorch has for ops which we decompose ourselves, put aside while a graph is captured.

With them AOTAutograd takes `upsample_bilinear2d` apart into look-ups of single elements before it asks our table. They
are in `OpOverload.py_kernels` (torch 2.13), a table of the whole process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from torch._C import DispatchKey
from torch._ops import OpOverload

from tt_torch.dynamo.decompositions import DECOMPOSITIONS
from tt_torch.dynamo.decompositions.registry import TAKEN

# The keys under which such a kernel comes before the table of decompositions.
EARLY = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)

Kernels = dict[DispatchKey, Any]
_lock = threading.Lock()
_captures = 0
_aside: dict[OpOverload, Kernels] = {}


@cache
def overloads() -> list[OpOverload]:
    """Overloads of the ops that we decompose ourselves for which PyTorch has such kernels."""
    packets = {op.overloadpacket for op in DECOMPOSITIONS if op not in TAKEN}
    every = [getattr(packet, name) for packet in packets for name in packet.overloads()]
    return [op for op in every if any(key in op.py_kernels for key in EARLY)]


@contextmanager
def put_aside() -> Iterator[None]:
    """Graphs may be captured in several threads: the first one puts the kernels aside, the last one puts them back."""
    global _captures
    with _lock:
        _captures += 1
        if _captures == 1:
            for op in overloads():
                _aside[op] = {key: op.py_kernels.pop(key) for key in EARLY if key in op.py_kernels}
                op._dispatch_cache.clear()
    try:
        yield
    finally:
        with _lock:
            _captures -= 1
            if not _captures:
                for op, kernels in _aside.items():
                    op.py_kernels |= kernels
                    op._dispatch_cache.clear()
