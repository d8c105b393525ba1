"""Runs native code in a forked child, so that a crash, a hang or runaway memory ends the child, not the user's process.

The child is a copy of this process, so modules need not be sent to it. Its result comes back as bytes. The child dies
with its parent, however that ends.
"""

from __future__ import annotations

import ctypes
import io
import math
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from torch_mlir import ir

from tt_torch.mlir.context import run_native

# Limits of one run of passes. Time of the processor is what a busy machine changes little: ResNet-50 and BERT-base take
# less than a second of it. A run that waits, for a lock of another thread, uses none of it.
PROCESSOR_SECONDS, SECONDS_PER_OP = 3, 0.02
SECONDS = 120
MEMORY = 4 << 30  # bytes that the passes may map in addition to what the process has mapped

OK, FAILED = b"\0", b"\1"


class NativeCrash(Exception):
    """Native passes ended their process; `args[0]` says how."""


def run_guarded(module: ir.Module, *passes: str) -> None:
    """`run_native` in a child process. Raises NativeCrash if the child dies, and MLIRError if the passes fail."""
    seconds = PROCESSOR_SECONDS + SECONDS_PER_OP * _count(module.operation)
    data = in_child(partial(_passed, module, passes), seconds)
    if data[:1] == FAILED:
        run_native(module, *passes)  # this fails in the same way, with the diagnostics; it did not crash in the child
    _adopt(module, data[1:])


def _passed(module: ir.Module, passes: tuple[str, ...]) -> bytes:
    buffer = io.BytesIO()
    try:
        run_native(module, *passes)
        module.operation.write_bytecode(buffer)
    except ir.MLIRError:
        return FAILED
    return OK + buffer.getvalue()


def in_child(work: Callable[[], bytes], seconds: float) -> bytes:
    """Runs `work` in a child process with `seconds` of processor time, and gives its result, which must not be empty.

    Raises NativeCrash if the child dies or needs too much time or memory, or if `work` raises.
    """
    reader, writer = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _work(work, math.ceil(seconds), writer, parent)  # never returns
    os.close(writer)
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        data, status = _receive(pipe, child)
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


def _count(op: ir.Operation) -> int:
    """The number of ops in an op, itself included."""
    return 1 + sum(_count(inner.operation) for region in op.regions for block in region for inner in block)


def _receive(pipe: io.FileIO, child: int) -> tuple[bytes, int]:
    """The bytes that the child wrote, and its wait status. The child has ended when this returns or raises."""
    end = time.monotonic() + SECONDS
    parts: list[bytes] = []
    try:
        while select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
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


def _adopt(module: ir.Module, bytecode: bytes) -> None:
    """Replaces the content of `module` by the module in the bytecode."""
    with module.context, ir.Location.unknown():
        new = ir.Module.parse(bytecode)
    for op in list(module.body.operations):
        op.operation.erase()
    for op in list(new.body.operations):
        module.body.append(op.operation.detach_from_parent())
    old, attributes = module.operation.attributes, new.operation.attributes
    for name in set(old) - set(attributes):
        del old[name]
    for name in attributes:
        old[name] = attributes[name]
