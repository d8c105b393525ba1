"""Runs native passes in a forked child, so that a crash, a hang or runaway memory ends the child, not the user's
process.

The child is a copy of this process, so the module need not be sent to it. The result comes back as bytecode.
"""

from __future__ import annotations

import io
import os
import resource
import select
import signal
import time
from pathlib import Path

from torch_mlir import ir

from tt_torch.mlir.context import run_native

SECONDS = 120  # for one run of passes; ResNet-50 and BERT-base take less than one
MEMORY = 4 << 30  # bytes that the passes may map in addition to what the process has mapped

OK, FAILED = b"\0", b"\1"


class NativeCrash(Exception):
    """Native passes ended their process; `args[0]` says how."""


def run_guarded(module: ir.Module, *passes: str) -> None:
    """`run_native` in a child process. Raises NativeCrash if the child dies, and MLIRError if the passes fail."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _work(module, passes, writer)  # never returns
    os.close(writer)
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        data = _receive(pipe, child)
    _, status = os.waitpid(child, 0)
    if status or not data:
        raise NativeCrash(_cause(status))
    if data[:1] == FAILED:
        run_native(module, *passes)  # this fails in the same way, with the diagnostics; it did not crash in the child
    _adopt(module, data[1:])


def _work(module: ir.Module, passes: tuple[str, ...], writer: int) -> None:
    """The work of the child. It ends by `_exit`, because no exit handler of the parent may run in it."""
    try:
        for number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        soft = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (soft, soft))
        buffer = io.BytesIO()
        try:
            run_native(module, *passes)
            module.operation.write_bytecode(buffer)
            answer = OK + buffer.getvalue()
        except ir.MLIRError:
            answer = FAILED
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    finally:
        os._exit(1)


def _receive(pipe: io.FileIO, child: int) -> bytes:
    end = time.monotonic() + SECONDS
    parts: list[bytes] = []
    while True:
        if not select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
            os.kill(child, signal.SIGKILL)
            return b""
        part = pipe.read(1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _cause(status: int) -> str:
    number = os.waitstatus_to_exitcode(status)
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
