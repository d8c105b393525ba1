"""If a native pass crashes, hangs or fails, this process stays as it was, and the error names the op."""

from __future__ import annotations

import functools
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.errors import StageError
from tt_torch.mlir import guard, pipeline
from tt_torch.mlir.context import make_context
from tt_torch.mlir.guard import NativeCrash, run_guarded
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


def hang(module: ir.Module, *passes: str) -> None:
    time.sleep(60)


def compute(module: ir.Module, *passes: str) -> None:
    while True:
        pass


def swell(module: ir.Module, *passes: str) -> None:
    kept = []
    while True:
        kept.append(bytearray(1 << 20))


@pytest.mark.parametrize(
    ("does", "limit", "value", "cause"),
    [
        (hang, "SECONDS", 0.5, "more than 0.5 s"),
        (compute, "PROCESSOR_SECONDS", 0.5, "computed without an end"),
        (swell, "MEMORY", 64 << 20, "too much memory"),
    ],
)
def test_a_pass_that_takes_too_long_or_too_much_memory(
    does: Callable[..., None], limit: str, value: float, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "run_native", does)
    monkeypatch.setattr(guard, limit, value)
    with make_context(), pytest.raises(NativeCrash, match=cause):
        run_guarded(ir.Module.parse(NESTED), "canonicalize")


GUARDED = """
import sys, time
from pathlib import Path
from torch_mlir import ir
from tt_torch.mlir import guard
from tt_torch.mlir.context import make_context

def endless(module, *passes):
    Path(sys.argv[1]).write_text(str(guard.os.getpid()))
    while True:
        pass

guard.run_native, guard.PROCESSOR_SECONDS = endless, 600
with make_context():
    guard.run_guarded(ir.Module.parse("module {}"), "canonicalize")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_child_ends_with_its_parent(number: int, tmp_path: Path) -> None:
    started = tmp_path / "pid"
    # A shell that starts a job in the background has it ignore SIGINT, and so would the parent.
    usual = functools.partial(signal.signal, signal.SIGINT, signal.default_int_handler)
    parent = subprocess.Popen([sys.executable, "-c", GUARDED, started], preexec_fn=usual, stderr=subprocess.DEVNULL)
    while not (started.exists() and started.read_text()):
        assert parent.poll() is None
        time.sleep(0.05)
    parent.send_signal(number)
    assert parent.wait(60) != 0
    assert _ends(int(started.read_text()))


def _ends(process: int) -> bool:
    """Whether a process ends within a minute. It counts as ended while nobody has asked for its status."""
    for _ in range(600):
        stat = Path(f"/proc/{process}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False
