"""Runs tests against a broken copy of the repository.

`python -m tests.mutation.judge COPY` is a process that has loaded torch and pytest, and that forks for each question.

A question is a line on standard input, {"tests": [names], "seconds": limit of processor time}. Its answer is a line on
standard output, {"outcome": "noticed", "survives" or "unjudged", "by": the test that failed, "seconds": time taken}. A
crash counts as noticed. A run leaves the place unjudged if it uses more than its limit, if the system killed it
because memory ran out, or if it does not find its tests.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

# Modules that tests import before they do anything. The package is not among them: each child loads its own.
LOADED = (
    "flatbuffers functorch.compile hypothesis numpy.polynomial pytest scipy.special sympy torch torch._dynamo.testing "
    "torch._inductor.decomposition torch._inductor.scheduler torch._functorch.aot_autograd torch.export "
    "torch.distributed.tensor torch.nn.attention.flex_attention torch.testing torch_mlir.fx torch_mlir.ir "
    "torch_mlir.rewrite torch_mlir.dialects.func torch_mlir.dialects.ext filecheck lit.main typer rich"
).split()
NO_TESTS = (4, 5)  # pytest's exit codes for a test that is not there, and for none at all
PATIENCE = 20  # wall-clock seconds per second of the limit; after these, a run that only waits is late, too
MARKS = "not build and not conformance and not sample and not slow"


class FirstFailure:
    """A pytest plugin that tells the parent which test failed first."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            os.write(self.pipe, report.nodeid.encode())

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            os.write(self.pipe, f"collecting {report.nodeid}".encode())


def child(tests: list[str], seconds: float, pipe: int, log: str) -> int:
    os.setsid()
    gc.freeze()  # otherwise each collection of garbage would walk over, and copy, the memory of the parent process
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    import pytest
    import torch

    with contextlib.suppress(ValueError):  # a second registration
        torch._import_device_backends()
    options = ["-x", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "-m", MARKS, "--strict-markers"]
    return int(pytest.main([*options, *tests], plugins=[FirstFailure(pipe)]))


def ask(tests: list[str], limit: float, log: str) -> dict[str, Any]:
    read, write = os.pipe()
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            status = child(tests, limit, write, log)
        except BaseException:  # the broken package cannot be imported: this is a break that was noticed
            traceback.print_exc()  # into the log
        finally:
            os._exit(status)
    os.close(write)
    status = None
    while status is None and time.monotonic() - start < PATIENCE * limit:
        done, code = os.waitpid(pid, os.WNOHANG)
        if done:
            status = code
        else:
            time.sleep(0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if status is None:
        os.waitpid(pid, 0)
    by = os.read(read, 1 << 16).decode()
    os.close(read)
    return {"outcome": outcome(status, by), "by": by or f"status {status}", "seconds": time.monotonic() - start}


def outcome(status: int | None, by: str) -> str:
    """The verdict of a run, from its status by `waitpid` (None if it still ran) and the name of the failed test."""
    if status == 0:
        return "survives"
    stopped = status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL))
    return "unjudged" if not by and (stopped or os.WEXITSTATUS(status or 0) in NO_TESTS) else "noticed"


def crashed(answer: dict[str, Any]) -> bool:
    """Whether an answer says "noticed" because the run ended without the report of a failed test."""
    return answer["outcome"] == "noticed" and answer["by"].startswith("status ")


def main(copy: str) -> None:
    package = importlib.util.find_spec("tt_torch")
    if not package or not Path(package.origin or "").is_relative_to(copy):
        raise ImportError(f"the tests would import the package from {package and package.origin}, not from {copy}")
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in LOADED:
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)
    torch.compile(lambda x: x.relu().sum(), backend="aot_eager")(torch.ones(2, requires_grad=True)).backward()
    torch._dynamo.reset()
    assert not any(name.startswith("tt_torch") for name in sys.modules)
    del os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"]
    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps(ask(question["tests"], question["seconds"], f"{copy}.log")), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
