"""The other end of ttnn_worker: starts it, asks it, and turns its death or silence into an error."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType

from tt_torch.codegen.ttnn_worker.channel import Channel
from tt_torch.codegen.ttnn_worker.messages import Answer, Arguments
from tt_torch.errors import DeviceMemoryError, EnvironmentMissingError, TTTorchError, WorkerError

TIMEOUT = 300.0  # seconds without an answer
GRACE = 30.0  # seconds for closing a device
HINT = "tt-smi shows the state of the devices, tt-smi -r resets them"
# What the library says when an operation takes longer than TT_METAL_OPERATION_TIMEOUT_SECONDS.
HANGS = "TIMEOUT: device timeout"
NO_MEMORY = "Out of Memory: "

# Only this package's folder is added to the path, at the end: its own names hide nothing.
MAIN = "import sys; sys.path.append(sys.argv[1]); from ttnn_worker.server import serve; serve(*map(int, sys.argv[2:]))"


def failure(command: str, text: str) -> TTTorchError:
    """The error for what the library said."""
    if HANGS in text:
        return WorkerError(f"the device hangs; {HINT}\n{text}")
    return (DeviceMemoryError if NO_MEMORY in text else WorkerError)(f"{command} failed: {text}")


class Client:
    """A worker process, as a context manager. `alive` until it dies, hangs, or an answer is not waited for.

    Raises EnvironmentMissingError where there is no such `python`.
    """

    def __init__(self, python: Path | str, environ: Mapping[str, str], timeout: float = TIMEOUT) -> None:
        self.timeout, self.alive = timeout, True
        # The library writes to where it runs, and leaves memory of its MPI where this is told to be.
        self._folder = tempfile.TemporaryDirectory(prefix="tt_torch_worker_")
        own = {"OMPI_MCA_btl_sm_backing_directory": self._folder.name}
        self._log = Path(self._folder.name) / "log"
        self._arenas = [os.memfd_create(name) for name in ("tt_torch_questions", "tt_torch_answers")]
        ours, theirs = socket.socketpair()
        self._connection = Connection(ours.detach())
        self._channel = Channel(self._connection, *self._arenas)
        with theirs:
            self._process = self._start(python, {"TT_LOGGER_LEVEL": "error"} | dict(environ) | own, theirs.fileno())

    def _start(self, python: Path | str, environ: dict[str, str], connection: int) -> subprocess.Popen[bytes]:
        passed = [connection, *reversed(self._arenas)]
        with self._log.open("w") as log:
            try:
                return subprocess.Popen(
                    [python, "-c", MAIN, Path(__file__).parent, *map(str, passed)],
                    pass_fds=passed,
                    env=environ,
                    cwd=self._folder.name,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # an interrupt from the terminal is for us
                )
            except OSError as error:
                self._release()
                raise EnvironmentMissingError(f"{python} cannot be started: {error.strerror}") from None

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, command: str, argument: Arguments | None = None) -> Answer:
        """What the worker answers; arrays in it are valid until the next question.

        Raises WorkerError for what it refuses, and when it has died or does not answer in time; DeviceMemoryError.
        """
        try:
            self._channel.send((command, argument))
            if not self._connection.poll(self.timeout):
                raise WorkerError(f"no answer to {command} in {self.timeout:g} s: the device hangs; {HINT}")
            verdict, result = self._channel.receive()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            code = self._end(GRACE)
            raise WorkerError(
                f"the worker died during {command} (exit code {code}); {HINT}\n{self._last_words()}"
            ) from None
        except BaseException:  # an interrupt, too: the answer that still comes is to no later question
            self._end(0)
            raise
        if verdict == "error":
            if HANGS in result:
                self._end(0)
            raise failure(command, result)
        return result

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return "\n".join(lines[-12:])

    def _end(self, grace: float) -> int | None:
        """Waits for the process and kills it after `grace` seconds; its exit code."""
        self.alive = False
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(grace)
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # one that waits inside the driver dies later
            return self._process.wait(GRACE)
        return None

    def close(self) -> None:
        """Closes the device; kills a worker that does not end by itself."""
        self._connection.close()
        if self._arenas:
            self._end(GRACE)
        self._release()

    def _release(self) -> None:
        self._connection.close()
        while self._arenas:
            os.close(self._arenas.pop())
        self._folder.cleanup()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
