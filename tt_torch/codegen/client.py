"""The other end of worker.py: starts it, asks it, and turns its death or silence into an error."""

from __future__ import annotations

import socket
import subprocess
import tempfile
from collections.abc import Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

from tt_torch.errors import WorkerError

TIMEOUT = 300.0  # seconds without an answer


class Client:
    """A worker process, as a context manager. `ask` raises WorkerError with what the worker said last."""

    def __init__(self, python: Path | str, environ: Mapping[str, str], timeout: float = TIMEOUT) -> None:
        ours, theirs = socket.socketpair()
        self.timeout = timeout
        self._folder = tempfile.TemporaryDirectory(prefix="tt_torch_worker_")  # the library writes to where it runs
        self._log = Path(self._folder.name) / "log"
        worker = Path(__file__).with_name("worker.py")
        with theirs, self._log.open("w") as log:
            self._process = subprocess.Popen(
                [python, worker, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=dict(environ),
                cwd=self._folder.name,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._connection = Connection(ours.detach())

    def ask(self, command: str, argument: Any = None) -> Any:
        try:
            self._connection.send((command, argument))
            if not self._connection.poll(self.timeout):
                self._process.kill()
                raise WorkerError(f"no answer to {command} in {self.timeout:.0f} s: the device hangs; try tt-smi -r")
            verdict, result = self._connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            code = self._process.wait()
            raise WorkerError(f"the worker died during {command} (exit code {code}):\n{self._last_words()}") from None
        if verdict == "error":
            raise WorkerError(f"{command} failed: {result}")
        return result

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return "\n".join(lines[-12:])

    def close(self) -> None:
        """Closes the device; kills a worker that does not end by itself."""
        self._connection.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
