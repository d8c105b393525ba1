"""Tries files in child processes, so that a crash, a hang or too much memory is a finding and does not end the run.

A child is a fork of a process that has prepared everything, so a new one costs little. It tries one file after
another. It shares the file that it tries, and the outcomes, with its parent by memory, because system calls would take
longer than the files. If a child ends before its last file, the next child goes on after the file that ended it.
"""

from __future__ import annotations

import mmap
import os
import resource
import signal
import tempfile
import traceback
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from tests.fuzz_files import kinds, reading

SECONDS = 10.0  # of processor time for a file; after this time, a signal ends the child
WAITING = 1800  # seconds by the clock for all files of a child, which may wait for a lock
MOST_MAPPED = 1 << 30  # bytes that files may add to what a child maps; beyond this, a request for memory fails
CHUNK = 2000  # files of one child
BY_TOOLS = 16  # one in 16 binaries is also read by all tools, which takes ten times as long
OUTCOMES = ("died", "read", "refused", "unfit", "raised")  # the byte that a child shares is an index of these
FINDINGS = ("died", "raised")
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")


def fuzz(kind: str, first: int, count: int, jobs: int, folder: Path) -> Counter[str]:
    """Tries `count` files of a kind, from the number `first` on; returns their outcomes, and keeps findings."""
    last = first + count
    chunks = [(kind, range(start, min(start + CHUNK, last)), folder) for start in range(first, last, CHUNK)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        return sum(pool.map(try_range, *zip(*chunks, strict=True)), Counter())


class Shared:
    """Memory that a child shares with its parent: the outcomes of its files, and the file that it tries."""

    def __init__(self, count: int) -> None:
        self.outcomes = mmap.mmap(-1, count)
        self.file = mmap.mmap(-1, 1 << 24)
        self._head = 16  # bytes for the length of the file and for the ending of its name

    def put(self, ending: str, data: bytes) -> None:
        self.file[: self._head] = len(data).to_bytes(8, "little") + ending.encode().ljust(8)
        self.file[self._head : self._head + len(data)] = data

    def get(self) -> tuple[str, bytes]:
        length = int.from_bytes(self.file[:8], "little")
        return self.file[8 : self._head].decode().strip(" \0"), self.file[self._head : self._head + length]


def try_range(kind: str, numbers: Sequence[int], folder: Path) -> Counter[str]:
    """Tries the files of a kind with these numbers; returns their outcomes."""
    shared, done = Shared(len(numbers)), 0
    while done < len(numbers):
        status, errors = _run_child(kind, numbers, done, folder, shared)
        if not status:
            break
        done = shared.outcomes.find(bytes([OUTCOMES.index("died")]), done) + 1
        if not done:
            raise RuntimeError(f"a child ended after its last file, with status {status}: {errors}")
        keep(folder, f"{kind}_{numbers[done - 1]}_{_cause(status)}", *shared.get(), errors)
    return Counter(OUTCOMES[code] for code in shared.outcomes[:])


def _cause(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return signal.Signals(-code).name if code < 0 else f"exit-{code}"


def keep(folder: Path, name: str, ending: str, data: bytes, text: str) -> None:
    """Writes a file that did harm into a folder, and a text about it beside the file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}{ending}").write_bytes(data)
    (folder / f"{name}.txt").write_text(text)


def _run_child(kind, numbers, first, folder, shared):
    """Tries the numbers from the index `first` on in a child. Returns its status, and what it wrote to stderr."""
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryDirectory(prefix="fuzz_files_") as scratch:
        child = os.fork()
        if child == 0:
            os.dup2(errors.fileno(), 2)
            _work(kind, numbers, first, folder, shared, Path(scratch))  # never returns
        _, status = os.waitpid(child, 0)
        errors.seek(0)
        return status, errors.read().decode(errors="replace")


def _work(kind, numbers, first, folder, shared, scratch):
    status = 1
    try:
        torch.set_num_threads(1)  # a forked child has none of the threads that would share a loop with it
        _limit()
        device = reading.device()
        for index in range(first, len(numbers)):
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            outcome = _try(kind, numbers[index], device, folder, shared, scratch)
            shared.outcomes[index] = OUTCOMES.index(outcome)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _limit():
    for number in (signal.SIGPROF, signal.SIGALRM, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.alarm(WAITING)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not SANITIZED:  # sanitizers map terabytes, and have a limit of their own
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + MOST_MAPPED,) * 2)


def _try(kind, number, device, folder, shared, scratch):
    """The outcome of one file. A file at which a reader raises another error than ours is kept."""
    shared.put("", b"")
    ending, data = kinds.made(kind, number)
    if data is None:
        return "unfit"
    shared.put(ending, data)
    try:
        return reading.try_file(ending, data, scratch, device, tools=number % BY_TOOLS == 0)
    except Exception as error:
        keep(folder, f"{kind}_{number}_{type(error).__name__}", ending, data, traceback.format_exc())
        return "raised"
