"""The client of ttnn_worker: starts the worker, asks it, and raises an error if it dies or does not answer."""

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
from tt_torch.errors import EnvironmentMissingError, TTTorchError, WorkerError
from tt_torch.memory_error import DeviceMemoryError

TIMEOUT = 300.0  # seconds without an answer
GRACE = 30.0  # seconds in which the worker may close its device
HINT = "tt-smi shows the state of the devices, tt-smi -r resets them"
# The library says this when an operation takes longer than TT_METAL_OPERATION_TIMEOUT_SECONDS.
HANGS = "TIMEOUT: device timeout"
NO_MEMORY = "Out of Memory: "

# Only this package's folder is added to the path, and at the end, so that its modules hide no others.
MAIN = "import sys; sys.path.append(sys.argv[1]); from ttnn_worker.server import serve; serve(*map(int, sys.argv[2:]))"


def failure(command: str, text: str) -> TTTorchError:
    """The error for a text of the library: DeviceMemoryError if memory was exhausted, otherwise WorkerError."""
    if HANGS in text:
        return WorkerError(f"the device hangs; {HINT}\n{text}")
    return (DeviceMemoryError if NO_MEMORY in text else WorkerError)(f"{command} failed: {text}")


class Client:
    """A worker process, as a context manager.

    `alive` becomes False when the worker dies, hangs, or is interrupted before it has answered.
    Raises EnvironmentMissingError if `python` cannot be started.
    """

    def __init__(self, python: Path | str, environ: Mapping[str, str], timeout: float = TIMEOUT) -> None:
        self.timeout, self.alive = timeout, True
        # The library writes files to the current folder, and its MPI leaves memory in the folder that this names.
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
                    start_new_session=True,  # so that Ctrl-C interrupts only us
                )
            except OSError as error:
                self._release()
                raise EnvironmentMissingError(f"{python} cannot be started: {error.strerror}") from None

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, command: str, argument: Arguments | None = None) -> Answer:
        """The worker's answer. Its arrays are valid until the next question.

        Raises WorkerError if the worker refuses the command, has died or does not answer in time, and
        DeviceMemoryError if the device's memory was exhausted.
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
        except BaseException:  # also an interrupt: the next question must not get the late answer
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
        """Waits `grace` seconds for the process, then kills it. Returns its exit code, or None if it did not end."""
        self.alive = False
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(grace)
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process that waits inside the driver dies later
            return self._process.wait(GRACE)
        return None

    def close(self) -> None:
        """Closes the device, and kills the worker if it does not end by itself."""
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
