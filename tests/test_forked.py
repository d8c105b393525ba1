"""A script in a fork is like one in a new process: what it is given, what it prints, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import forked
import pytest
from forked import Server

GIVEN = """
import os, sys
print(__name__, sys.argv, os.getcwd(), sorted(os.environ), sys.path[:2], sys.stdin.read())
print("an error", file=sys.stderr)
"""
ENDS = {
    "success": "import atexit; atexit.register(print, 'the end')",
    "a status": "print(1); raise SystemExit(3)",
    "a text": "raise SystemExit('a text')",
    "an exception": "print(1); 1 / 0",
    "a signal": "import os; print(1, flush=True); os.kill(os.getpid(), 9)",
    "a crash": "import ctypes; ctypes.string_at(0)",
    "a thread": "import threading, time; threading.Thread(target=lambda: (time.sleep(0.1), print(2))).start()",
    "an exit without an end": "import os; print('lost'); os._exit(4)",
}


@pytest.mark.parametrize("kind", ["code", "file", "module"])
def test_a_script_has_its_arguments_folder_and_variables(tmp_path: Path, forks: Server, kind: str) -> None:
    (tmp_path / "given.py").write_text(GIVEN)
    script = {"code": ["-c", GIVEN], "file": [tmp_path / "given.py"], "module": ["-m", "given"]}[kind]
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), "LC_CTYPE": "C.UTF-8"}
    new, fork = both(forks, *script, "--option", "x", cwd=tmp_path, env=variables)
    assert (fork.returncode, fork.stdout, fork.stderr) == (0, new.stdout, "an error\n")


@pytest.mark.parametrize("how", ENDS)
def test_a_script_ends_as_a_process_does(forks: Server, how: str) -> None:
    """In a fork, a traceback begins with lines of the server, so only the last line is compared."""
    new, fork = both(forks, "-c", ENDS[how])
    assert (fork.returncode, fork.stdout) == (new.returncode, new.stdout)
    assert fork.stderr.splitlines()[-1:] == new.stderr.splitlines()[-1:]


def test_a_script_that_hangs_is_ended(forks: Server) -> None:
    script = forks.start("-c", "import time; print('begun', flush=True); time.sleep(600)")
    with pytest.raises(subprocess.TimeoutExpired) as caught:
        script.ended(timeout=3)
    assert caught.value.stdout == "begun\n"
    with pytest.raises(ProcessLookupError):
        os.kill(script.pid, 0)


def test_scripts_run_at_the_same_time(tmp_path: Path, forks: Server) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = forks.start("-c", "print(open('pipe').read())", cwd=tmp_path)
    writer = forks.start("-c", "open('pipe', 'w').write('a word')", cwd=tmp_path)
    assert [script.ended().stdout for script in (reader, writer)] == ["a word\n", ""]


def test_nothing_of_a_script_is_left_in_the_next(forks: Server) -> None:
    leave = "import os, sys, torch; torch.left = os.environ['LEFT'] = sys.path[0] = '1'"
    look = "import os, sys, torch; print(hasattr(torch, 'left'), 'LEFT' in os.environ, sys.path[:1])"
    assert forks.run("-c", leave).returncode == 0
    assert forks.run("-c", look).stdout == "False False ['']\n"


def test_random_numbers_differ_as_in_processes(forks: Server) -> None:
    draw = "import numpy, random, torch; print(random.random(), numpy.random.rand(), torch.rand(1).item())"
    first, second = (forks.run("-c", draw).stdout.split() for _ in range(2))
    assert len({*first, *second}) == 6


def test_pytorch_has_its_threads_and_has_compiled_nothing(forks: Server) -> None:
    code = """
import os, torch, torch._dynamo
from tt_torch.mlir.guard import SERVER
assert len(os.listdir("/proc/self/task")) == 1 and SERVER._process is None and not torch._dynamo.utils.counters
torch.set_num_threads(3)
print((torch.ones(1 << 20) + 1).sum().item(), len(os.listdir("/proc/self/task")) > 1)
print(torch.compile(lambda x: x + 1, backend="tt")(torch.ones(1)).item())
"""
    assert forks.run("-c", code).stdout == "2097152.0 True\n2.0\n"


def test_scripts_end_with_the_server() -> None:
    command = [sys.executable, "-c", "import forked, time; forked.serve(); time.sleep(600)"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    server = subprocess.Popen(command, cwd=Path(forked.__file__).parent, **pipes)
    server.stdin.write("{}\n")
    server.stdin.flush()
    script = int(server.stdout.readline())
    os.kill(script, 0)
    server.communicate(timeout=60)
    with pytest.raises(ProcessLookupError):
        os.kill(script, 0)


def both(forks: Server, *arguments: object, **options: object) -> list[subprocess.CompletedProcess[str]]:
    """The end of a script in a new process, and in a fork."""
    command, pipes = [sys.executable, *map(str, arguments)], {"stdin": subprocess.DEVNULL, "text": True}
    new = subprocess.run(command, capture_output=True, check=False, **pipes, **options)
    return [new, forks.run(*arguments, **options)]
