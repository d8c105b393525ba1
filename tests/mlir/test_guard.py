"""If a native pass crashes, hangs or fails, this process stays as it was, and the error names the op."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.errors import StageError
from tt_torch.mlir import child, guard, pipeline
from tt_torch.mlir.child import Child, NativeCrash, in_child
from tt_torch.mlir.context import make_context
from tt_torch.mlir.guard import Server, run_guarded
from tt_torch.mlir.stablehlo.importer import import_graph

NESTED = "module { func.func @f(%a: i32) -> i32 { %0 = arith.addi %a, %a : i32 return %a : i32 } }"


def test_the_result_is_that_of_the_passes() -> None:
    with make_context():
        module = ir.Module.parse(NESTED)
        module.operation.attributes["tt.gone"] = ir.UnitAttr.get()
        module.operation.attributes["tt.kept"] = ir.UnitAttr.get()
        run_guarded(module, "canonicalize")
        assert "arith.addi" not in str(module)
        assert "tt.kept" in str(module)


def test_the_server_has_no_pytorch() -> None:
    """If the server had PyTorch, each process that compiles would import PyTorch twice."""
    code = "import sys, tt_torch.mlir.guard; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


def test_a_crash_names_the_op_and_leaves_a_repro(tmp_path: Path) -> None:
    """torch-mlir crashes on a nonzero of rank 0. Our FX passes remove such an op, so they are not used here."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.nonzero(torch.ops.aten.relu(x))

    graph = make_fx(function, tracing_mode="fake", _allow_non_fake_inputs=True, record_stack_traces=True)
    with torch.fx.experimental._config.patch(meta_nonzero_assume_all_nonzero=True):
        graph = graph(torch.tensor(1.0)).graph
    module = import_graph(graph, make_context(), ["input"])
    config = CompilerConfig(repro_dir=str(tmp_path))
    with pytest.raises(StageError) as caught:
        pipeline.run_steps(module, pipeline.TO_STABLEHLO, config, pipeline.Timings())
    assert "aten.nonzero.default" in str(caught.value)
    assert "SIGSEGV" in str(caught.value)
    assert len(list(tmp_path.glob("*/before.mlirbc"))) == 1


def test_an_interruption_is_raised_and_leaves_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    pids = []
    kill = os.kill
    monkeypatch.setattr(os, "kill", lambda pid, number: pids.append(pid) or kill(pid, number))
    with monkeypatch.context() as patched:
        patched.setattr(child.connection, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            in_child(hang, seconds=60)
    with pytest.raises(ProcessLookupError):
        kill(pids[0], 0)


def interrupt(*_arguments: object) -> None:
    raise KeyboardInterrupt


def hang() -> bytes:
    time.sleep(60)
    return b"done"


def compute() -> bytes:
    while True:
        pass


def swell() -> bytes:
    kept = []
    while True:
        kept.append(bytearray(1 << 20))


@pytest.mark.parametrize(
    ("does", "limit", "value", "cause"),
    [
        (hang, "SECONDS", 0.5, "more than 0.5 s"),
        (compute, "", 0, "computed without an end"),
        (swell, "MEMORY", 64 << 20, "too much memory"),
    ],
)
def test_work_that_takes_too_long_or_too_much_memory(
    does: Callable[[], bytes], limit: str, value: float, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if limit:
        monkeypatch.setattr(child, limit, value)
    with pytest.raises(NativeCrash, match=cause):
        in_child(does, seconds=0.5)


def test_a_limit_of_time_is_that_of_one_question() -> None:
    def compute_a_little(question: bytes) -> bytes:
        end = time.process_time() + 0.4
        while time.process_time() < end:
            pass
        return question

    child = Child(compute_a_little)
    assert [child.ask(question, seconds=0.5) for question in (b"1", b"2", b"3")] == [b"1", b"2", b"3"]
    assert child.seconds > 1  # 1.2 s in all, and the limit is a whole second
    child.close()


def test_work_that_nobody_waits_for_ends() -> None:
    reader, writer = os.pipe()
    os.close(writer)
    with pytest.raises(NativeCrash):
        in_child(hang, seconds=60, until=reader)
    os.close(reader)


def test_the_server_starts_again_after_it_died() -> None:
    server = Server()
    with make_context():
        module = guard._bytecode(ir.Module.parse(NESTED))
    first = server.ask(module, ["canonicalize"], 9)
    assert first[:1] == guard.OK and server._process
    server._process.kill()
    server._process.wait()
    assert server.ask(module, ["canonicalize"], 9) == first
    with pytest.raises(NativeCrash):
        server.ask(b"no bytecode", ["canonicalize"], 9)
    assert server.ask(module, ["canonicalize"], 9) == first
    server.stop()


# Here the answers of passes are process ids.
CHILDREN = """
import os, time
from tt_torch.mlir import guard

def passed(module, passes, context):
    if passes == ["die"]:
        os.abort()
    while passes == ["compute"] and time.process_time() <= guard.CHILD_SECONDS:
        pass
    return (guard.FAILED if passes == ["fail"] else guard.OK) + str(os.getpid()).encode()

guard._passed = passed
guard._read = lambda module, context: passed(module, [], context)
guard.serve()
"""


def test_which_runs_share_a_child() -> None:
    server = Server(CHILDREN)

    def process(passes: list[str] | None) -> bytes:
        return server.ask(b"module {}", passes, 9)[1:]

    usual = ["canonicalize"]
    first = process(usual)
    assert process(usual) == first
    for last in ["fail"], ["compute"], None:
        assert process(last) == first
        first, before = process(usual), first
        assert first != before and process(usual) == first
    with pytest.raises(NativeCrash, match="SIGABRT"):
        process(["die"])
    assert process(usual) != first
    server.stop()


def test_an_interrupt_leaves_no_late_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, the next question would get the answer to the interrupted question."""

    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    server = Server(CHILDREN)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(guard, "receive", interrupted)
        server.ask(b"module {}", ["fail"], 9)
    assert server.ask(b"module {}", ["canonicalize"], 9)[:1] == guard.OK
    server.stop()


def test_a_path_of_python_that_is_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, Path("/nowhere"), "/with 'quotes' and \udcff"])
    server = Server()
    with make_context():
        module = guard._bytecode(ir.Module.parse(NESTED))
    assert server.ask(module, ["canonicalize"], 9)[:1] == guard.OK
    server.stop()


def test_a_server_that_dies_meanwhile_is_an_error() -> None:
    server = Server("import sys; sys.stdin.buffer.read(1)")
    with pytest.raises(NativeCrash, match="was ended"):
        server.ask(b"module {}", ["canonicalize"], 9)
    assert server._process is None


def test_a_fork_has_a_server_of_its_own() -> None:
    """Two processes on one pipe would read each other's answers."""
    with make_context():
        module = guard._bytecode(ir.Module.parse(NESTED))
    answer = guard.SERVER.ask(module, ["canonicalize"], 9)
    theirs = in_child(lambda: guard.SERVER.ask(module, ["cse"], 9) + b"|" + str(guard.SERVER._process.pid).encode(), 9)
    assert theirs.rpartition(b"|")[2] != str(guard.SERVER._process.pid).encode()
    assert guard.SERVER.ask(module, ["canonicalize"], 9) == answer


def test_threads_take_turns() -> None:
    with make_context():
        modules = [ir.Module.parse(NESTED.replace("@f", f"@f{i}")) for i in range(20)]
        questions = [guard._bytecode(module) for module in modules]
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda module: guard.SERVER.ask(module, ["canonicalize"], 9), questions))
    assert all(f"f{i}".encode() in answer for i, answer in enumerate(answers))


ENDLESS = """
import os
from pathlib import Path
from tt_torch.mlir import guard

def endless(module, *passes):
    Path({path!r}).write_text(str(os.getpid()))
    while True:
        pass

guard.run_native = endless
guard.serve()
"""
GUARDED = """
from torch_mlir import ir
from tt_torch.mlir import guard
from tt_torch.mlir.child import NativeCrash, in_child
from tt_torch.mlir.context import make_context

guard.SERVER, guard.PROCESSOR_SECONDS = guard.Server({server!r}), 600
with make_context():
    guard.run_guarded(ir.Module.parse("module {{}}"), "canonicalize")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_child_ends_with_the_users_process(number: int, tmp_path: Path) -> None:
    started = tmp_path / "pid"
    # A job that a shell starts in the background ignores SIGINT. The parent would ignore it, too.
    usual = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    code = GUARDED.format(server=ENDLESS.format(path=str(started)))
    parent = subprocess.Popen([sys.executable, "-c", code], preexec_fn=usual, stderr=subprocess.DEVNULL)
    while not (started.exists() and started.read_text()):
        assert parent.poll() is None
        time.sleep(0.05)
    server = int(Path(f"/proc/{started.read_text()}/stat").read_text().rpartition(")")[2].split()[1])
    parent.send_signal(number)
    assert parent.wait(60) != 0
    assert _ends(int(started.read_text())) and _ends(server)


def _ends(process: int) -> bool:
    """Whether a process ends within a minute. It counts as ended, even if nobody has asked for its status."""
    for _ in range(600):
        stat = Path(f"/proc/{process}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False
