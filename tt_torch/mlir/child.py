"""Runs native code in forked children, so that a crash, a hang or runaway memory ends the child, not its parent.

A child dies when its parent ends, also if the parent crashes or is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import resource
import signal
import struct
import time
from collections.abc import Callable
from multiprocessing import Pipe, connection
from pathlib import Path

SECONDS = 120  # the limit for one answer by the clock, because a child that waits uses no processor time
MEMORY = 4 << 30  # bytes that a child may map in addition to what its parent has mapped
_SECONDS = struct.Struct("<d")  # before a question: its limit; before an answer: what the child has used


class NativeCrash(Exception):
    """Native code ended its process; `args[0]` says how."""


class Child:
    """A forked process that answers questions with a function, one after the other, until it crashes or is closed."""

    seconds = 0.0  # the processor time that the child had used when it gave its last answer

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._pipe, theirs = Pipe()
        parent = os.getpid()
        self._process = os.fork()
        if self._process == 0:
            self._pipe.close()
            _serve(answer, theirs, parent)  # never returns
        theirs.close()

    def ask(self, question: bytes, seconds: float, until: int | None = None) -> bytes:
        """Asks a question and returns the answer. The child may use `seconds` of processor time for it.

        Raises NativeCrash if the child dies, if it needs too much time or memory, or if its function raises. It also
        raises NativeCrash if the descriptor `until` can be read: then nobody wants the answer. The child has ended when
        this raises.
        """
        try:
            with contextlib.suppress(EOFError, OSError):  # it died
                self._pipe.send_bytes(_SECONDS.pack(seconds) + question)
                if connection.wait([self._pipe, *([] if until is None else [until])], SECONDS) == [self._pipe]:
                    answer = self._pipe.recv_bytes()
                    (self.seconds,) = _SECONDS.unpack_from(answer)
                    return answer[_SECONDS.size :]
                os.kill(self._process, signal.SIGKILL)
            raise NativeCrash(_cause(self._wait()))
        except BaseException:  # such as Ctrl-C
            self.close()
            raise

    def close(self) -> None:
        """Ends the process."""
        if self._process:
            os.kill(self._process, signal.SIGKILL)
            self._wait()

    def _wait(self) -> int:
        """The status with which the process ends."""
        process, self._process = self._process, 0
        self._pipe.close()
        return os.waitpid(process, 0)[1]


def in_child(work: Callable[[], bytes], seconds: float, until: int | None = None) -> bytes:
    """The result of `work`, which runs in a child of its own. The arguments and errors are those of `Child.ask`."""
    child = Child(lambda _: work())
    try:
        return child.ask(b"", seconds, until)
    finally:
        child.close()


def _serve(answer: Callable[[bytes], bytes], pipe: connection.Connection, parent: int) -> None:
    """The work of the child. It ends by `_exit`, because no exit handler of the parent may run in it."""
    try:
        die_with(parent)
        for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGINT, signal.SIGTERM, signal.SIGXCPU):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (mapped, mapped))
        while True:
            question = pipe.recv_bytes()
            end = math.ceil(time.process_time() + _SECONDS.unpack_from(question)[0])
            resource.setrlimit(resource.RLIMIT_CPU, (end, resource.getrlimit(resource.RLIMIT_CPU)[1]))  # SIGXCPU
            data = answer(question[_SECONDS.size :])
            pipe.send_bytes(_SECONDS.pack(time.process_time()) + data)
    finally:
        os._exit(1)


def die_with(parent: int) -> None:
    """Asks the kernel to kill this process when the thread that forked it ends. That thread waits for this process."""
    kill_with_parent = 1  # PR_SET_PDEATHSIG of linux/prctl.h
    ctypes.CDLL(None).prctl(kill_with_parent, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before the kernel was asked
        os._exit(1)


def _cause(status: int) -> str:
    number = os.waitstatus_to_exitcode(status)
    if number == -signal.SIGXCPU:
        return "it computed without an end"
    if number == -signal.SIGKILL:
        return f"it took more than {SECONDS} s, or the system's memory"
    if number < 0:
        return f"it died of {signal.Signals(-number).name}"
    return "it needed too much memory"
