"""`tt-torch compare-compilers MODEL`, with the stand-in for a plugin, which always writes the same binary."""

from __future__ import annotations

import pytest
import torch
from typer.testing import CliRunner

from tt_torch.sweep.models import run_model
from tt_torch.tools.cli import app
from tt_torch.tools.compare_compilers import agreement

SOURCE = """
import torch

def model(x, weight, bias):
    return torch.relu(torch.nn.functional.linear(x, weight, bias))

def same():
    return model, (torch.randn(10, 64), torch.randn(32, 64), torch.randn(32))

def other():
    return model, {"x": torch.randn(4, 8), "weight": torch.randn(3, 8), "bias": torch.randn(3)}
"""
MODELS = """
import torch
from tt_torch.sweep.registry import Model

class Linear(torch.nn.Module):
    def forward(self, x, weight, bias):
        return torch.relu(torch.nn.functional.linear(x, weight, bias))

def make():
    return Linear(), {"x": torch.randn(10, 64), "weight": torch.randn(32, 64), "bias": torch.randn(32)}

MODELS = [Model("linear", make)]
"""


@pytest.fixture
def compared(tmp_path, stand_in, monkeypatch):
    """A function that runs the command on a function of SOURCE.

    It returns a dict with an item for each row of the table, from the first cell to the list of the other cells.
    """
    monkeypatch.setenv("TT_TORCH_PJRT_PLUGIN", str(stand_in))
    (tmp_path / "model.py").write_text(SOURCE)

    def run(name, status=0):
        result = CliRunner().invoke(app, ["compare-compilers", f"{tmp_path / 'model.py'}:{name}", "--level", "0"])
        assert result.exit_code == status, result.output
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in result.stdout.splitlines()[2:]]
        return {first: cells for first, *cells in rows}

    return run


def test_both_compilers_are_compared_with_eager(compared):
    rows = compared("same")
    assert set(rows) == {"tt-torch", "tt-torch, with optimizer", "tt-mlir, level 0"}
    for ops, moves, megabytes, milliseconds, seconds, pcc, difference in rows.values():
        assert int(ops) > int(moves) >= 0
        assert min(map(float, (megabytes, milliseconds, seconds))) > 0
        assert float(pcc) > 0.99999 and float(difference) < 1e-5
    assert rows["tt-torch"][:2] != rows["tt-mlir, level 0"][:2]


def test_a_compiler_that_fails_has_the_reason_in_its_row(compared):
    rows = compared("other", status=1)
    assert float(rows["tt-torch"][5]) > 0.99999
    assert rows["tt-mlir, level 0"][0].startswith("InputShapeError")


@pytest.mark.parametrize("behave", ["", "crash"])
def test_a_sweep_records_what_each_compiler_makes(behave, tmp_path, stand_in, monkeypatch):
    """The stand-in's program takes x, weight and bias in this order. If its worker dies, eager PyTorch computes
    the model, and the record has the reason."""
    monkeypatch.setenv("TT_TORCH_PJRT_PLUGIN", str(stand_in))
    monkeypatch.setenv("TT_TORCH_TT_MLIR_OPTIONS", f"behave={behave}")
    monkeypatch.setenv("TT_TORCH_REPRO_DIR", str(tmp_path))
    (tmp_path / "models.py").write_text(MODELS)
    ours, theirs = (run_model("linear", str(tmp_path / "models.py"), name) for name in ("tt-torch", "tt-mlir"))
    assert ours["verdict"] == "match" and ours["bytes_moved"] > 0 and ours["modelled_seconds"] > 0
    assert theirs["verdict"] == "match" and theirs["pcc"] > 0.99999
    if behave:
        assert {"SIGABRT" in op["reason"] for op in theirs["host_ops"]} == {True}
    else:
        assert not theirs["host_ops"] and theirs["device_ops"] != ours["device_ops"]


def test_the_variable_that_chooses_the_compiler_is_refused(compared, monkeypatch, tmp_path):
    monkeypatch.setenv("TT_TORCH_COMPILER", "tt-mlir")
    result = CliRunner().invoke(app, ["compare-compilers", f"{tmp_path / 'model.py'}:same"], env={"COLUMNS": "300"})
    assert result.exit_code == 2 and "TT_TORCH_COMPILER" in result.output


def test_results_of_zeros_and_without_elements():
    zeros = torch.zeros(3)
    assert agreement([zeros, torch.empty(0)], [zeros, torch.empty(0)]) == ("1.0000000", "0.0e+00")
    assert agreement([zeros + 0.5], [zeros])[1] == "5.0e-01"
    assert agreement([], []) == agreement(torch.empty(0), torch.empty(0)) == ("", "")
