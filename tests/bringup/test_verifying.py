"""Intermediate verification and bisection.

STRICT sets eight-bit weights and requires a PCC of 0.99999. With it, the results of linear layers depart from eager.
"""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from typer.testing import CliRunner

import tt_torch
from tt_torch.bringup import intermediates
from tt_torch.bringup.bisect import Bisector
from tt_torch.bringup.intermediates import Row, report, totals
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.errors import StageError
from tt_torch.tools.cli import app

STRICT = {"weight_dtype": "bfp8_b", "required_pcc": 0.99999}


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 32)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.sigmoid(x).cos()
        values, _ = torch.max(self.linear(y).exp(), -1)
        return values, y.transpose(0, 1).contiguous().view(4, 64)


def run(folder: Path, model: type[torch.nn.Module] = Model, shape: tuple[int, ...] = (4, 64), **options: Any) -> None:
    config = CompilerConfig(results_path=str(folder), repro_dir=str(folder / "repro"), model_name="m", **options)
    model = model().eval()
    compiled = torch.compile(model, backend=tt_torch.backend, options=BackendOptions(compiler_config=config))
    x = torch.randn(shape)
    with torch.no_grad():
        for got, expected in zip(compiled(x), model(x), strict=True):
            torch.testing.assert_close(got, expected, rtol=0.05, atol=0.05)
        compiled(x)  # a second call, which is not compared


def test_tables_without_a_name_replace_none_of_another_run(tmp_path: Path) -> None:
    config = CompilerConfig(results_path=str(tmp_path))
    for target in ("exp", "sin"):
        totals.clear()  # as in a new process
        report([Row(target, "", target, "", (), "")], config)
    assert {path.name: path.read_text().splitlines()[1].split(",")[0] for path in tmp_path.iterdir()} == {
        "model_0_intermediates.csv": "exp",
        "model_2_0_intermediates.csv": "sin",
    }


@pytest.mark.parametrize("options", [{}, {"model_name": "m"}])
def test_a_table_without_a_file_is_a_warning(options: dict[str, str], capsys: pytest.CaptureFixture) -> None:
    totals.clear()
    report([Row("exp", "", "exp", "", (), "", 1.0)], CompilerConfig(results_path="/proc/1", **options))
    assert "all agree" in (said := capsys.readouterr().err) and totals["compared"] == 1
    assert re.search("^warning: the table has no file: .*'/proc/1", said, re.MULTILINE)


def test_the_comparison_is_on_the_config(tmp_path: Path) -> None:
    config = CompilerConfig(results_path=str(tmp_path), enable_intermediate_verification=True)
    torch.compile(torch.exp, backend="tt", options=BackendOptions(compiler_config=config))(torch.randn(4))
    ((node, row),) = config.runtime_intermediate_cache.items()
    assert node == "exp" and row.pcc > 0.9999 and row.atol < 1e-6


def rows(folder: Path) -> list[dict[str, str]]:
    (path,) = folder.glob("*_intermediates.csv")
    with path.open() as file:
        return list(csv.DictReader(file))


def test_all_ops_agree(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    run(tmp_path, enable_intermediate_verification=True)
    compared = {row["target"]: row for row in rows(tmp_path) if row["pcc"]}
    assert {"aten.sigmoid.default", "aten.cos.default", "aten.addmm.default", "aten.exp.default"} <= set(compared)
    assert all(float(row["pcc"]) > 0.99999 for row in compared.values())
    assert compared["aten.exp.default"]["line"].endswith(f":{Model.forward.__code__.co_firstlineno + 2}")
    assert "all agree" in capsys.readouterr().err


class Batched(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 32)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [self.linear(x)]


def test_an_op_with_a_view_folded_in_is_compared(tmp_path: Path) -> None:
    run(tmp_path, Batched, (2, 4, 64), enable_intermediate_verification=True)
    (row,) = (row for row in rows(tmp_path) if row["target"] == "aten.addmm.default" and row["op"] == "LinearOp")
    assert row["shape"] == "(2, 4, 32)" and float(row["pcc"]) > 0.99999


class Split(torch.nn.Module):
    """The whole graph has a constant. The part of the graph after the op on the host has one, too."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.linalg.eigvalsh(x @ x.mT) + torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.fft.rfft(x).abs()]


def test_parts_of_a_split_graph_are_compared(tmp_path: Path) -> None:
    with pytest.warns(HostFallbackWarning, match="eigh"):
        run(tmp_path, Split, (4, 4), enable_intermediate_verification=True)
    tables = [path.read_text() for path in tmp_path.glob("*_intermediates.csv")]
    assert any("aten.mm.default" in table for table in tables) and any(
        "aten.maximum.default" in table for table in tables
    )


class OnDevice(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 32, device="tt")

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [self.linear(x.to("tt")) * (1 + torch.arange(32, device="tt"))]


def test_a_model_on_the_device_is_compared_with_the_cpu(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    config = CompilerConfig(results_path=str(tmp_path), enable_intermediate_verification=True, bisect=True)
    config = replace(config, repro_dir=str(tmp_path / "repro"), weight_dtype="bfp8_b", required_pcc=0.999999)
    with torch.no_grad():
        torch.compile(OnDevice(), backend="tt", options=BackendOptions(compiler_config=config))(torch.randn(4, 64))
    assert "first to depart: LinearOp of addmm" in capsys.readouterr().err
    assert list((tmp_path / "repro").glob("*_bisect.py"))


def test_the_first_op_to_depart_is_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    run(tmp_path, enable_intermediate_verification=True, **STRICT)
    assert "first to depart: LinearOp of addmm" in capsys.readouterr().err
    departed = [row["target"] for row in rows(tmp_path) if row["pcc"] and float(row["pcc"]) < STRICT["required_pcc"]]
    assert departed[0] == "aten.addmm.default"


@pytest.mark.slow
def test_bisect_writes_a_program_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    run(tmp_path, bisect=True, **STRICT)
    (script,) = (tmp_path / "repro").glob("*_bisect.py")
    assert f"{script} (it fails too)" in capsys.readouterr().err
    text = script.read_text()
    assert "aten.addmm" in text and "sigmoid" not in text and "exp" not in text.replace("expected", "")
    script.write_text(text.replace("bfp8_b", "none").replace("'none'", "None"))  # without eight-bit weights it passes
    subprocess.run([sys.executable, script], check=True, timeout=120, capture_output=True)


def test_nothing_is_bisected_when_all_agree(tmp_path: Path) -> None:
    run(tmp_path, bisect=True)
    assert not (tmp_path / "repro").exists()


def chain(x: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x).exp()
    return (y + x).sin().abs().log() * 2


def breaks_on(*names: str, error: Exception | None = None) -> Callable[..., Any]:
    """A compiler that fails if all of the named ops are in one graph.

    It raises `error` if this is given. Otherwise its programs give wrong results.
    """

    def compile_piece(gm: GraphModule, roles: Sequence[str]) -> Callable[..., Any]:
        text = str(gm.graph)
        broken = all(f"aten.{name}" in text for name in names)
        if broken and error:
            raise error
        return lambda inputs: [r + broken * torch.randn_like(r) for r in gm(*inputs)]

    return compile_piece


@pytest.mark.parametrize(
    ("broken", "smallest"),
    [
        (["add"], ["add"]),
        (["exp", "sin"], ["exp", "add", "sin"]),  # an op between them cannot be left out
        (["sin", "log"], ["sin", "abs", "log"]),
    ],
)
@pytest.mark.parametrize("error", [None, StageError("fuse", ValueError(), None)], ids=["wrong", "raises"])
def test_the_smallest_part_is_found(broken: list[str], smallest: list[str], error: Exception | None) -> None:
    x = torch.randn(16, 16)
    gm = make_fx(lambda x: (chain(x),), tracing_mode="fake")(x)
    inputs = None if error else [x]
    part = Bisector(gm, ["input"], breaks_on(*broken, error=error), inputs, 0.99).search()
    assert part is not None
    assert [str(n.target).split(".")[1] for n in part.ops] == smallest


@pytest.mark.slow
def test_verify_command(tmp_path: Path) -> None:
    program = "import sys, torch; print(torch.compile(torch.exp, backend='tt')(torch.tensor([0.0])), sys.argv[1:])"
    (tmp_path / "program.py").write_text(program)
    command = [sys.executable, "-m", "tt_torch.tools.cli", "verify", "program.py", "--", "--own", "x"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "tensor([1.]) ['--own', 'x']\n" and "all agree" in done.stderr


NOTHING = "error: nothing was compared"


@pytest.mark.parametrize(
    ("program", "arguments", "status", "said"),
    [
        ("print(1)", [], 1, NOTHING),
        ("import torch; torch.compile(torch.exp, backend='eager')(torch.ones(2))", [], 1, NOTHING),
        ("import torch; torch.compile(torch.linalg.eigvalsh, backend='tt')(torch.eye(2)); exit()", [], 1, NOTHING),
        ("raise SystemExit(3)", [], 1, "the program ended with status 3"),
        ("import torch; torch.compile(torch.nn.Linear(99, 9), backend='tt')(torch.randn(5, 99))", ["--pcc", "1"], 1,
         "error: 1 of 1 compared ops depart"),
        ("open('nothing')", [], 1, 'Traceback (most recent call last):\n  File "program.py", line 1, in <module>'),
        ("open('nothing')", [], 1, "'nothing'\nerror: the program ended with status 1"),
        ("1 +", [], 1, "SyntaxError"),
        ("raise SystemExit(3)", ["--pcc", "2"], 2, "--pcc"),
        ("raise SystemExit(3)", ["--pcc", "nan"], 2, "--pcc"),
    ],
)  # fmt: skip
def test_verify_command_is_green_only_if_all_was_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, arguments: list[str], status: int, said: str
) -> None:
    (tmp_path / "program.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TT_TORCH_WEIGHT_DTYPE", "bfp8_b")  # so that a linear layer departs
    for name in ("VERIFY_INTERMEDIATES", "BISECT", "REQUIRED_PCC"):  # the command sets these for its own process
        monkeypatch.setenv(f"TT_TORCH_{name}", "0")
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(intermediates, "totals", Counter())
    done = CliRunner().invoke(app, ["verify", *arguments, "program.py"])
    assert (done.exit_code, said in done.stderr) == (status, True), done.stderr
