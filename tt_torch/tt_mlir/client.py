"""The client of pjrt_worker.py: starts it, asks it, and ends it when it dies or takes too long."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from importlib.resources import files
from pathlib import Path

from tt_torch.codegen.kernel_elf import minimal_kernel

WORKER = Path(__file__).with_name("pjrt_worker.py")
LAST = 2000  # characters of a log that an error shows

_clients: dict[tuple[Path, int], Client] = {}
_lock = threading.Lock()


class WorkerFailure(Exception):
    """A worker died or took too long; `log` is what it printed during the request."""

    def __init__(self, reason: str, log: str) -> None:
        super().__init__(f"{reason}: {log.strip()[-LAST:]}" if log.strip() else reason)
        self.log = log


def client(library: Path) -> Client:
    """The client of a plugin in this process; a new one if the last worker has ended."""
    with _lock:
        key = library, os.getpid()  # a forked child must not share the worker of its parent
        if key not in _clients or not _clients[key].alive:
            _clients[key] = Client(library)
        return _clients[key]


class Client:
    """A worker process. One request runs at a time; threads wait for each other."""

    def __init__(self, library: Path) -> None:
        # A plugin unpacks files of several hundred megabytes into its TMPDIR, and two processes must not share them.
        self._folder = tempfile.TemporaryDirectory(prefix="tt_torch_pjrt_")
        folder = Path(self._folder.name)
        for name in ("tmp", "bin"):
            (folder / name).mkdir()
        self._log, self._lock = folder / "log", threading.Lock()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", WORKER, library, str(os.getpid()), folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=folder,  # the library writes files to the current folder
                env=_environment(library, folder),
                start_new_session=True,  # so that Ctrl-C interrupts only us, and that its children end with it
            )
        self._owner = os.getpid()
        atexit.register(self.close)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: str, seconds: float) -> tuple[str, str]:
        """The error of a request, which is empty if there is none, and what the worker printed.

        Raises WorkerFailure if the worker dies or has not answered after `seconds`. In this case, and also if this
        process is interrupted, the worker is killed.
        """
        with self._lock:
            start = self._log.stat().st_size
            try:
                answer = self._exchange(request.encode() + b"\n", time.monotonic() + seconds)
                if answer is None:
                    raise WorkerFailure(f"it took more than {seconds:g} s", self._printed(start))
                if not answer:
                    raise WorkerFailure(f"it died {_cause(self._process.wait())}", self._printed(start))
            except BaseException:
                self.close()
                raise
            return json.loads(answer)["error"], self._printed(start)

    def _exchange(self, request: bytes, end: float) -> bytes | None:
        """The answer; empty if the worker has ended, and None if it does not come in time."""
        questions, answers = self._process.stdin, self._process.stdout
        assert questions and answers  # they are pipes
        try:
            questions.write(request)
            questions.flush()
        except BrokenPipeError:
            return b""
        answer = b""
        while not answer.endswith(b"\n"):
            if not select.select([answers], [], [], max(0.0, end - time.monotonic()))[0]:
                return None
            if not (part := os.read(answers.fileno(), 1 << 16)):
                return b""
            answer += part
        return answer

    def _printed(self, start: int) -> str:
        with self._log.open("rb") as log:
            log.seek(start)
            return log.read().decode(errors="replace")

    def close(self) -> None:
        """Ends the worker and its children, and removes its files. A forked child of this process leaves them alone."""
        if os.getpid() != self._owner:
            return
        atexit.unregister(self.close)
        if self.alive:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()


def _environment(library: Path, folder: Path) -> dict[str, str]:
    """The variables of a worker.

    From optimization level 1 on, tt-mlir asks tt-metal's model of ops, which builds kernels for a device that does not
    exist. They never run, so a stand-in for the compiler is enough. tt-metal calls it by the name of `ccache`. Real
    devices must not find these kernels, so they get a cache of their own.
    """
    stand_in = folder / "bin" / "ccache"
    stand_in.write_bytes(files("tt_torch.codegen").joinpath("mock/riscv-tt-elf-g++").read_bytes())
    stand_in.chmod(0o755)
    stand_in.with_name("kernel.elf").write_bytes(minimal_kernel())
    variables = dict(os.environ) | {
        "PATH": f"{stand_in.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "TMPDIR": str(folder / "tmp"),
        "TT_METAL_CACHE": str(folder / "tmp" / "kernels"),
        "TT_METAL_CCACHE_KERNEL_SUPPORT": "1",
    }
    if (root := library.parent / "tt-metal").is_dir():  # the vendor's package has tt-metal beside its library
        variables.setdefault("TT_METAL_RUNTIME_ROOT", str(root))
    return variables


def _cause(code: int) -> str:
    return f"of {signal.Signals(-code).name}" if code < 0 else f"with exit status {code}"
