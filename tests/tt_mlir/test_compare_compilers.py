"""`tt-torch compare-compilers FILE:FUNCTION`, with the stand-in for a plugin, which always writes the same binary."""

from __future__ import annotations

import pytest
import torch
from typer.testing import CliRunner

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


@pytest.fixture
def compared(tmp_path, stand_in, monkeypatch):
    """A function that runs the command on a function of SOURCE, and gives the cells of each row by its first cell."""
    monkeypatch.setenv("TT_TORCH_PJRT_PLUGIN", str(stand_in))
    (tmp_path / "model.py").write_text(SOURCE)

    def run(name):
        result = CliRunner().invoke(app, ["compare-compilers", f"{tmp_path / 'model.py'}:{name}", "--level", "0"])
        assert result.exit_code == 0, result.output
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
    rows = compared("other")
    assert float(rows["tt-torch"][5]) > 0.99999
    assert rows["tt-mlir, level 0"][0].startswith("InputShapeError")


def test_the_variable_that_chooses_the_compiler_is_refused(compared, monkeypatch, tmp_path):
    monkeypatch.setenv("TT_TORCH_COMPILER", "tt-mlir")
    result = CliRunner().invoke(app, ["compare-compilers", f"{tmp_path / 'model.py'}:same"], env={"COLUMNS": "300"})
    assert result.exit_code == 2 and "TT_TORCH_COMPILER" in result.output


def test_results_of_zeros_and_without_elements():
    zeros = torch.zeros(3)
    assert agreement([zeros, torch.empty(0)], [zeros, torch.empty(0)]) == ("1.0000000", "0.0e+00")
    assert agreement([zeros + 0.5], [zeros])[1] == "5.0e-01"
    assert agreement([], []) == agreement(torch.empty(0), torch.empty(0)) == ("", "")
