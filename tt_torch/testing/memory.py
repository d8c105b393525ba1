"""A CSV file with the memory of each test: this process's resident memory, in MB of 2^20 bytes."""

from __future__ import annotations

import csv
import ctypes
import fcntl
import gc
import io
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

COLUMNS = "test_name start_mem end_mem min_memory max_memory by_test after_gc after_trim".split()
SECONDS = 0.1  # between two looks at the memory of a running test


class MemoryLog:
    """A plugin that adds a line per test to `path`. `by_test` is the rise from the start to the highest value."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        with _Samples() as samples:
            result = yield
        gc.collect()
        after_gc = resident()
        ctypes.CDLL(None).malloc_trim(0)
        seen = samples.values
        rise = max(seen) - seen[0]
        self._append([item.nodeid, *(f"{v:.2f}" for v in (*_ends(seen), rise, after_gc, resident()))])
        return result

    def _append(self, row: list[str]) -> None:
        """Adds a line, and the header to an empty file."""
        with self.path.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # workers of pytest-xdist share the file
            file.write(_line(row) if file.seek(0, 2) else _line(COLUMNS) + _line(row))


def _ends(values: list[float]) -> tuple[float, float, float, float]:
    return values[0], values[-1], min(values), max(values)


def _line(cells: list[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def resident() -> float:
    """The resident memory of this process, in MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmRSS")


class _Samples:
    """The memory at the start, every SECONDS, and at the end."""

    def __init__(self) -> None:
        self.values = [resident()]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._ended.wait(SECONDS):
            self.values.append(resident())

    def __enter__(self) -> _Samples:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
        self.values.append(resident())
