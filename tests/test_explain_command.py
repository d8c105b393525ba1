"""`tt-torch explain MODEL`."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tt_torch.tools.cli import app

SOURCE = """
import torch

def model(x, *, scale=1):
    y = torch.relu(x)
    print("a line of the program")
    return y * scale

def by_position():
    return model, (torch.ones(2, 3),)

def by_name():
    return torch.nn.Linear(4, 3), {"input": torch.ones(2, 4)}

def bad_form():
    return model, torch.ones(3)

def no_model():
    return 1, ()

def numbers_as_names():
    return model, {0: torch.ones(3)}

def with_a_list():
    return torch.nn.Linear(2, 2), [torch.ones(2)]

def needs(argument):
    return model, ()

def fails():
    raise FileNotFoundError("weights.pt")

def only_modules():
    return torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sigmoid()), (torch.ones(4),)

number = 1
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(SOURCE)
    return path


def test_the_report_is_printed(file: Path) -> None:
    result = CliRunner().invoke(app, ["explain", f"{file}:by_position"])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[-2:] == ["ops on the host: 0", "recompilations: 0"]
    assert "graphs: 2" in lines and "graph breaks: 1" in lines
    assert f"  1 op at {file}:5; 24 bytes go to the device and 24 to the host per call" in lines


def test_the_report_is_printed_as_json(file: Path) -> None:
    result = CliRunner().invoke(app, ["explain", f"{file}:by_position", "--json"])
    assert result.exit_code == 0, result.output
    ((found,), graphs) = (facts := json.loads(result.stdout))["breaks"], facts["graphs"]
    assert found["location"] == f"{file}:6" and found["left"].startswith("the graph breaks at this line")
    assert [graph["lines"] for graph in graphs] == [[f"{file}:5"], [f"{file}:7"]]


def test_arguments_by_name(file: Path) -> None:
    result = CliRunner().invoke(app, ["explain", f"{file}:by_name"])
    assert result.exit_code == 0 and "graphs: 1" in result.stdout and "60 bytes of weights once" in result.stdout


@pytest.mark.parametrize(
    ("target", "status", "said"),
    [
        ("{file}", 2, "FILE.py:FUNCTION"),
        ("{file}:", 2, "FILE.py:FUNCTION"),
        ("nowhere.py:f", 2, "FILE.py:FUNCTION"),
        ("no.such:f", 2, "MODULE:FUNCTION"),
        ("{file}:nothing", 2, "has no function nothing"),
        ("{file}:number", 2, "has no function number"),
        ("{file}:bad_form", 1, "bad_form returns (function, Tensor), not a model and its arguments"),
        ("{file}:no_model", 1, "no_model returns (int, tuple), not a model and its arguments"),
        ("{file}:with_a_list", 1, "with_a_list returns (Linear, list), not a model and its arguments, as a tuple"),
        ("{file}:needs", 1, "loaded: TypeError: needs() missing 1 required positional argument: 'argument'"),
        ("{file}:fails", 1, "loaded: line 31: FileNotFoundError: weights.pt"),
        ("{file}:numbers_as_names", 1, "not a model and its arguments"),
    ],
)
def test_bad_input_is_told_in_a_line(file: Path, target: str, status: int, said: str) -> None:
    result = CliRunner().invoke(app, ["explain", target.format(file=file)], env={"COLUMNS": "400"})
    assert result.exit_code == status and said in result.output and "Traceback" not in result.output


def test_a_file_that_fails_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("\n1 / 0")
    result = CliRunner().invoke(app, ["explain", f"{tmp_path / 'bad.py'}:f"])
    assert result.exit_code == 1 and "line 2: ZeroDivisionError" in result.output


def test_modules_stand_for_lines_where_no_line_of_the_user_calls_them(file: Path) -> None:
    """The command's own script, and typer below it, are no lines of the user."""
    script = Path(sysconfig.get_path("scripts"), "tt-torch")
    done = subprocess.run([script, "explain", f"{file}:only_modules"], capture_output=True, text=True, check=False)
    assert "  2 ops at module 0, module 1; 16 bytes go" in done.stdout, done.stdout + done.stderr
