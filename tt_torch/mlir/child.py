"""Runs native code in a forked child, so that a crash, a hang or runaway memory ends the child, not its parent.

The child dies with its parent, however that ends.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from io import FileIO
from pathlib import Path

SECONDS = 120  # of a clock, which a child that waits for something may take
MEMORY = 4 << 30  # bytes that a child may map in addition to what its parent has mapped


class NativeCrash(Exception):
    """Native code ended its process; `args[0]` says how."""


def in_child(work: Callable[[], bytes], seconds: float, until: int | None = None) -> bytes:
    """Runs `work` in a child process with `seconds` of processor time, and gives its result, which must not be empty.

    Raises NativeCrash if the child dies or needs too much time or memory, if `work` raises, or if the descriptor
    `until` can be read, because nobody wants the result then.
    """
    reader, writer = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _work(work, math.ceil(seconds), writer, parent)  # never returns
    os.close(writer)
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        data, status = _receive(pipe, child, until)
    if status or not data:
        raise NativeCrash(_cause(status))
    return data


def _work(work: Callable[[], bytes], seconds: int, writer: int, parent: int) -> None:
    """The work of the child. It ends by `_exit`, because no exit handler of the parent may run in it."""
    try:
        _die_with(parent)
        for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (mapped, mapped))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))  # SIGXCPU, then SIGKILL
        answer = work()
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    finally:
        os._exit(1)


def _die_with(parent: int) -> None:
    """The kernel kills this process when the thread that forked it ends, which waits for it."""
    kill_with_parent = 1  # PR_SET_PDEATHSIG of linux/prctl.h
    ctypes.CDLL(None).prctl(kill_with_parent, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel was asked
        os._exit(1)


def _receive(pipe: FileIO, child: int, until: int | None) -> tuple[bytes, int]:
    """The bytes that the child wrote, and its wait status. The child has ended when this returns or raises."""
    end = time.monotonic() + SECONDS
    parts: list[bytes] = []
    watched = [pipe.fileno(), *([] if until is None else [until])]
    try:
        while (ready := select.select(watched, [], [], max(0.0, end - time.monotonic()))[0]) and until not in ready:
            if not (part := pipe.read(1 << 20)):
                return b"".join(parts), os.waitpid(child, 0)[1]
            parts.append(part)
    except BaseException:  # such as Ctrl-C
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    os.kill(child, signal.SIGKILL)
    return b"", os.waitpid(child, 0)[1]


def _cause(status: int) -> str:
    number = os.waitstatus_to_exitcode(status)
    if number == -signal.SIGXCPU:
        return "it computed without an end"
    if number == -signal.SIGKILL:
        return f"it took more than {SECONDS} s, or the system's memory"
    if number < 0:
        return f"it died of {signal.Signals(-number).name}"
    return "it needed too much memory"
