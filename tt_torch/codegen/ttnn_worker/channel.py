"""Messages between two processes. Arrays in them pass through memory that both processes map.

The worker's Python has no tt_torch, so this file imports nothing of it. The memory has no name in the file system.
It is therefore freed when both processes have ended, in whatever way.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from .messages import Message

ALIGNMENT = 64  # bytes, of each array


class _Pickler(pickle.Pickler):
    """Pickles arrays by type, shape and memory. NumPy's own way names functions that differ between its versions."""

    def reducer_override(self, value: object) -> Any:
        if type(value) is not np.ndarray:
            return NotImplemented
        whole = value if value.flags.c_contiguous else value.copy(order="C")
        return np.ndarray, (whole.shape, whole.dtype.str, pickle.PickleBuffer(whole.data))


class Arena:
    """Memory behind a file descriptor. It grows as needed and never shrinks."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._mapped: mmap.mmap | None = None

    def view(self, size: int) -> memoryview:
        """The first `size` bytes. Earlier views stay valid."""
        if os.fstat(self.descriptor).st_size < size:
            os.ftruncate(self.descriptor, size)
        if self._mapped is None or len(self._mapped) < size:
            self._mapped = mmap.mmap(self.descriptor, 0)
        return memoryview(self._mapped)[:size]


class Channel:
    """One end of the channel. Each end writes into its own arena, so an answer may contain arrays of the question.

    The connection itself carries only sizes, so it does not fill up when the other end no longer reads.
    """

    def __init__(self, connection: Connection, own: int, other: int) -> None:
        self.connection, self._own, self._other = connection, Arena(own), Arena(other)

    def send(self, message: Message) -> None:
        buffers: list[pickle.PickleBuffer] = []
        text = io.BytesIO()
        _Pickler(text, protocol=5, buffer_callback=buffers.append).dump(message)
        sources = [text.getbuffer(), *(buffer.raw() for buffer in buffers)]
        places, end = _places([len(source) for source in sources])
        memory = self._own.view(end)
        for source, place in zip(sources, places, strict=True):
            memory[place : place + len(source)] = source
        self.connection.send([len(source) for source in sources])

    def receive(self) -> Message:
        """The next message. The other end overwrites the memory of its arrays with the message after it."""
        sizes = self.connection.recv()
        places, end = _places(sizes)
        memory = self._other.view(end)
        text, *buffers = (memory[place : place + size] for place, size in zip(places, sizes, strict=True))
        return pickle.loads(text, buffers=buffers)


def _places(sizes: list[int]) -> tuple[list[int], int]:
    """The positions of buffers of these sizes that lie one after the other, and the end of the last one."""
    places, end = [], 0
    for size in sizes:
        places.append(end)
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return places, end
