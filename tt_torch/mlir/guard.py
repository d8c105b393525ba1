"""Runs native passes where a crash, a hang or runaway memory cannot end the user's process.

A server process has nothing but MLIR loaded, and forks children that run the passes. A fork of the user's process would
take longer than most passes: it copies the tables of all pages, and each page that is then written costs a fault. A
fork of the server still takes 15 ms, and the passes of a small graph take 5 ms. So one child runs the passes of several
graphs.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from torch_mlir import ir

from tt_torch.mlir.child import Child, NativeCrash
from tt_torch.mlir.context import make_context, parse_bytecode, require_harmless, run_native

# The limit for one run of passes. It is processor time, because a busy machine changes that little: ResNet-50 and
# BERT-base take less than a second of it. A run that waits for a lock of another thread uses no processor time.
PROCESSOR_SECONDS, SECONDS_PER_OP, BYTES_PER_SECOND = 3, 0.02, 1e6
CHILD_SECONDS = 0.5  # when a child has used more processor time than this, the next run gets a fresh child
OK, FAILED = b"\0", b"\1"
SIZES = struct.Struct("<QQ")
SERVE = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from tt_torch.mlir.guard import serve; serve()"


def run_guarded(module: ir.Module, *passes: str) -> None:
    """`run_native` in another process. Raises NativeCrash if it dies, and MLIRError if the passes fail."""
    seconds = PROCESSOR_SECONDS + SECONDS_PER_OP * _count(module.operation)
    data = SERVER.ask(_bytecode(module), passes, seconds)
    if data[:1] == FAILED:
        run_native(module, *passes)  # this fails in the same way, with the diagnostics; it did not crash in the child
    _adopt(module, data[1:])


def read_guarded(source: bytes) -> bytes:
    """Reads bytecode or a portable artifact in another process. Returns bytecode that this process can read.

    `source` may have ops of unknown dialects. Raises NativeCrash if the other process dies, and ValueError for damaged
    bytes.
    """
    data = SERVER.ask(source, None, PROCESSOR_SECONDS + len(source) / BYTES_PER_SECOND)
    if data[:1] == FAILED:
        raise ValueError(data[1:].decode())
    return data[1:]


class Server:
    """The process that runs passes. It is started for the first run, and again if it has died."""

    def __init__(self, code: str = SERVE) -> None:
        self._code, self._lock = code, threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the process if it does not run, and does not wait until it is ready."""
        with self._lock:
            self._running()

    def ask(self, module: bytes, passes: Sequence[str] | None, seconds: float) -> bytes:
        """The answer of `_passed`; if `passes` is None, the answer of `_read`. Raises NativeCrash if the work does not
        end by itself within `seconds` of processor time, or if the process dies."""
        with self._lock:
            process = self._running()
            assert process.stdin and process.stdout
            try:
                send(process.stdin.fileno(), {"passes": passes, "seconds": seconds}, module)
                answer, data = receive(process.stdout.fileno())
            except (EOFError, BrokenPipeError):
                self.stop()
                raise NativeCrash("the process that runs native passes was ended") from None
            except BaseException:  # such as Ctrl-C: the next question would get the answer to this one
                self.stop()
                raise
        if answer["crash"]:
            raise NativeCrash(answer["crash"])
        return data

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            folders = [folder for folder in sys.path if isinstance(folder, str)]  # Python ignores all others
            command = [sys.executable, "-c", self._code, json.dumps(folders)]
            # Unbuffered: a fork of this process must not write the rest of a buffer. In a session of its own, the
            # process does not get the signals of the user's terminal.
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
            self._process = subprocess.Popen(command, start_new_session=True, **pipes)
        return self._process

    def stop(self) -> None:
        """Ends the process. Its child, if there is one, ends with it."""
        if self._process:
            self._process.kill()
            self._process.communicate()  # closes the pipes and waits
            self._process = None

    def forget(self) -> None:
        """Runs in a fork of the user's process. The process that runs passes belongs to the fork's parent."""
        if self._process:
            self._process.returncode = 0  # otherwise Python warns that it still runs
        self._process, self._lock = None, threading.Lock()


SERVER = Server()
atexit.register(SERVER.stop)
os.register_at_fork(after_in_child=SERVER.forget)


def serve() -> None:
    """The work of the server: reads questions from standard input, and writes answers to standard output, until the
    user's process has closed the pipe.

    The next graph gets a fresh child after a crash, after passes that failed, and after CHILD_SECONDS. It also gets one
    after bytes were read, because damaged bytes may harm a process without ending it. A child is made before its first
    question comes."""
    questions, answers = 0, os.dup(1)
    os.dup2(2, 1)  # what a pass prints must not be taken for an answer
    answer = partial(_answer, make_context())
    child = Child(answer)
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            question, module = receive(questions)
            passes, crash, data = question["passes"], "", b""
            try:
                data = child.ask(json.dumps(passes).encode() + _END + module, question["seconds"], questions)
            except NativeCrash as error:
                crash = str(error)
            send(answers, {"crash": crash}, data)
            if passes is None or data[:1] != OK or child.seconds > CHILD_SECONDS:
                child.close()
                child = Child(answer)


_END = b"\0"  # it ends the passes in a question, because JSON never contains this byte


def _answer(context: ir.Context, question: bytes) -> bytes:
    text, _, module = question.partition(_END)
    passes = json.loads(text)
    return _read(module, context) if passes is None else _passed(module, passes, context)


def _passed(source: bytes, passes: Sequence[str], context: ir.Context) -> bytes:
    module = ir.Module.parse(source, context)
    try:
        run_native(module, *passes)
    except ir.MLIRError:
        return FAILED
    return OK + _bytecode(module)


def _read(source: bytes, context: ir.Context) -> bytes:
    context.allow_unregistered_dialects = True
    try:
        module = parse_bytecode(source, context)
        require_harmless(module.operation.get_asm(large_elements_limit=1, enable_debug_info=True))
        return OK + _bytecode(module)
    except (ir.MLIRError, ValueError) as error:
        return FAILED + str(error).encode()


def send(pipe: int, facts: dict[str, Any], data: bytes) -> None:
    """Writes a message: the sizes of its two parts, facts as JSON, and bytes."""
    text = json.dumps(facts).encode()
    message = memoryview(SIZES.pack(len(text), len(data)) + text + data)
    while message:
        message = message[os.write(pipe, message) :]


def receive(pipe: int) -> tuple[dict[str, Any], bytes]:
    """The facts and bytes of a message. Raises EOFError if the other side has closed the pipe."""
    text, data = SIZES.unpack(_exactly(pipe, SIZES.size))
    return json.loads(_exactly(pipe, text)), _exactly(pipe, data)


def _exactly(pipe: int, count: int) -> bytes:
    parts = []
    while count:
        if not (part := os.read(pipe, min(count, 1 << 20))):
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _count(op: ir.Operation) -> int:
    """The number of ops in an op, itself included."""
    return 1 + sum(_count(inner.operation) for region in op.regions for block in region for inner in block)


def _bytecode(module: ir.Module) -> bytes:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


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
