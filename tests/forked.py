"""Runs Python scripts in forks of a process that has imported the backend.

In a process of its own, a small script spends most of its time on importing PyTorch and the compiler.

    python tests/forked.py        # the server, which `Server` starts

The server only imports. It has compiled nothing, and it has one thread, because threads do not survive a fork. A fork
leaves the loop of the server and becomes the script, so that the interpreter ends as it does for any script. A test
whose subject is the start of a process (imports, autoload, variables that are read while something is imported) has to
start one by `subprocess`.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Server:
    """The process that forks. It ends when its standard input is closed."""

    def __init__(self) -> None:
        one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        self._process = subprocess.Popen([sys.executable, __file__], env=one_thread, **pipes)

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def start(self, *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Script:
        """Starts a script. The arguments are "-c" and code, "-m" and a module, or a file, and then the script's."""
        folder = tempfile.TemporaryDirectory()
        variables = dict(os.environ if env is None else env)
        own = {"arguments": [*map(str, arguments)], "cwd": str(cwd or Path.cwd()), "variables": variables}
        return Script(self, self.ask(own | {"folder": folder.name}), own["arguments"], folder)

    def run(self, *arguments: object, timeout: float = 300, **options: Any) -> subprocess.CompletedProcess[str]:
        """Starts a script and waits for its end. The result is that of `subprocess.run`, with both outputs as text."""
        return self.start(*arguments, **options).ended(timeout)

    def ask(self, question: Mapping[str, Any], timeout: float | None = None) -> int | None:
        """The answer of the server, or None if there is none within `timeout` seconds. An empty question waits for the
        answer to the question before."""
        assert self._process.stdin and self._process.stdout
        if question:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
        if not select.select([self._process.stdout], [], [], timeout)[0]:
            return None
        return int(self._process.stdout.readline())


@dataclass
class Script:
    """A script that was started. The method `ended` waits for its end."""

    server: Server
    pid: int
    arguments: list[str]
    folder: tempfile.TemporaryDirectory[str]

    def ended(self, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """The exit status and the outputs. After `timeout` seconds, it is ended, and TimeoutExpired is raised."""
        status = self.server.ask({"wait": self.pid}, timeout)
        if status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.server.ask({})
        with self.folder as folder:
            outputs = [Path(folder, name).read_text() for name in ("stdout", "stderr")]
        if status is None:
            raise subprocess.TimeoutExpired(self.arguments, timeout, *outputs)
        return subprocess.CompletedProcess(self.arguments, status, *outputs)


def serve() -> dict[str, Any]:
    """The loop of the server. In a fork, it returns the question that describes the script."""
    answers, running = os.dup(1), set()
    os.dup2(2, 1)  # what other code prints must not be read as an answer
    while line := sys.stdin.readline():
        question = json.loads(line)
        if "wait" in question:
            running.remove(question["wait"])
            answer = os.waitstatus_to_exitcode(os.waitpid(question["wait"], 0)[1])
        elif answer := os.fork():
            running.add(answer)
        else:
            os.close(answers)
            return question
        os.write(answers, b"%d\n" % answer)
    for script in running:  # no test has asked for its end
        os.kill(script, signal.SIGKILL)
        os.waitpid(script, 0)
    raise SystemExit


def become(script: Mapping[str, Any]) -> None:
    """Gives this process the state of a new one."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(Path(script["folder"], name), os.O_WRONLY | os.O_CREAT), descriptor)
    os.chdir(script["cwd"])
    os.environ.clear()
    os.environ.update(script["variables"])
    first, *rest = script["arguments"]
    sys.argv[:] = rest if first == "-m" else [first, *rest[first == "-c" :]]
    folders = [folder for folder in script["variables"].get("PYTHONPATH", "").split(os.pathsep) if folder]
    sys.path[:1] = [{"-c": "", "-m": script["cwd"]}.get(first, str(Path(first).absolute().parent)), *folders]
    torch.default_generator.seed()  # each process draws other random numbers
    np.random.seed()


def execute(first: str, second: str) -> None:
    if first == "-m":
        runpy.run_module(second, run_name="__main__", alter_sys=True)
    elif first == "-c":
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(second, "<string>", "exec"), vars(main))
    else:
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    import numpy as np
    import torch._dynamo

    import tt_torch.device
    import tt_torch.driver.backend  # noqa: F401

    assert len(os.listdir("/proc/self/task")) == 1
    gc.freeze()  # a fork's collections would copy the pages of all objects
    script = serve()
    become(script)
    execute(*(script["arguments"] + [""])[:2])
