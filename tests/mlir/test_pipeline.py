"""A failing step leaves files and a command that repeat it; the error for an unsupported op names the user's line."""

from __future__ import annotations

import inspect
import os
import shlex
import subprocess
from pathlib import Path

import pytest
import torch
from forked import Server
from torch_mlir import ir

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.errors import StageError, UnsupportedOpError
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import make_context

TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "ttir.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def fail(module, config):
    raise ZeroDivisionError("no good")


def run(steps, text=TEXT, **options):
    with make_context():
        pipeline.run_steps(ir.Module.parse(text), steps, CompilerConfig(**options), pipeline.Timings())


def test_a_failing_step_leaves_a_repro_folder(tmp_path):
    with pytest.raises(StageError, match="step fuse failed: ZeroDivisionError: no good") as caught:
        run([("fuse", fail)], repro_dir=str(tmp_path))
    (folder,) = tmp_path.iterdir()
    assert (folder / "error.txt").read_text() == "ZeroDivisionError: no good\n"
    assert (folder / "command.txt").read_text() == caught.value.repro + "\n"
    assert caught.value.repro == f"tt-torch opt {folder / 'before.mlirbc'} --step fuse"


def repeat(forks: Server, command: str) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TT_TORCH_")}
    variables, _, arguments = command.partition("tt-torch ")
    environment |= dict(text.split("=", 1) for text in shlex.split(variables))
    return forks.run("-m", "tt_torch.tools.cli", *shlex.split(arguments), env=environment)


def test_the_command_repeats_the_failure(tmp_path, forks):
    step = ("layouts", pipeline.STEPS["layouts"])
    with pytest.raises(StageError, match=r"step layouts failed: .* no function @main") as caught:
        run([step], TEXT.replace("@main", "@other"), repro_dir=str(tmp_path))
    again = repeat(forks, caught.value.repro)
    assert again.returncode == 1
    assert "no function @main" in again.stderr


def test_the_command_has_the_options(tmp_path, forks):
    with pytest.raises(StageError) as caught:
        run([("apply-dtype", fail)], repro_dir=str(tmp_path), dtype="bf16", enable_consteval=False)
    assert caught.value.repro.startswith("TT_TORCH_CONSTEVAL=0 TT_TORCH_DTYPE=bf16 tt-torch opt ")
    assert "dtype = bf16" in repeat(forks, caught.value.repro).stdout


def test_a_step_that_breaks_the_ir_is_our_bug(tmp_path):
    def break_it(module, config):
        op = module.body.operations[0].regions[0].blocks[0].operations[0]
        with module.context, ir.Location.unknown():
            op.results[0].set_type(ir.Type.parse("tensor<5xf32>"))

    with pytest.raises(StageError, match=r"ttir\.exp: got result tensor<5xf32>, expected tensor<4xf32>"):
        run([("break", break_it)], repro_dir=str(tmp_path), verify_ir=True)
    assert any(tmp_path.iterdir())


def test_steps_are_timed():
    timings = pipeline.Timings()
    with make_context():
        pipeline.run_steps(ir.Module.parse(TEXT), [("fuse", pipeline.STEPS["fuse"])], CompilerConfig(), timings)
    assert list(timings.steps) == ["fuse", "verify"]


def test_times_of_a_step_add_up(monkeypatch):
    clock = iter([10.0, 12.0, 20.0, 23.0])
    monkeypatch.setattr(pipeline.time, "perf_counter", lambda: next(clock))
    timings = pipeline.Timings()
    assert [timings.measure("fuse", lambda: 1), timings.measure("fuse", lambda: 2)] == [1, 2]
    assert timings.steps == {"fuse": 5.0}


def singular_values(x):
    return torch.linalg.svdvals(x)


def eigenvalues(x):
    return torch.linalg.eigvals(x.to(torch.complex64))


@pytest.mark.parametrize(
    ("function", "op", "stage"),
    [
        (singular_values, "aten._linalg_svd.default", "stablehlo"),
        (eigenvalues, "aten.complex.default", "fx-passes"),
    ],
)
def test_unsupported_ops_name_the_users_line(function, op, stage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception) as caught:
        tt_torch.compile_model(function, (torch.ones(4, 4),))
    error = caught.value
    while error is not None and not isinstance(error, UnsupportedOpError):
        error = error.__cause__ or error.__context__ or getattr(error, "inner_exception", None)
    line = inspect.getsourcelines(function)[1] + 1
    assert (error.op, error.stage) == (op, stage)
    assert error.location == f"{Path(__file__)}:{line}"
    assert not any(tmp_path.iterdir())  # an unsupported program is not a bug of ours, so there are no repro files
