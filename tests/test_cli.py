"""The `tt-torch` command, on a binary that tt-mlir's compiler made."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tt_torch.tools.cli import app

BINARY = str(Path(__file__).parent / "data" / "flatbuffer" / "linear_relu.ttnn")


def invoke(*arguments):
    return CliRunner().invoke(app, arguments)


def test_inspect_prints_programs_ops_and_size():
    result = invoke("inspect", BINARY)
    assert result.exit_code == 0
    for text in ("linear_relu.ttnn: ", "program main (", "input 0: Float32 10x64", "device ops per call"):
        assert text in result.stdout


def test_inspect_as_json():
    summary = json.loads(invoke("inspect", BINARY, "--json").stdout)
    assert summary["size"] == Path(BINARY).stat().st_size
    assert summary["programs"][0]["outputs"] == [{"shape": [10, 32], "dtype": "Float32"}]
    assert sum(summary["ops"].values()) == summary["device_ops"]


def test_a_damaged_file_is_one_line(tmp_path):
    damaged = tmp_path / "damaged.ttnn"
    damaged.write_bytes(Path(BINARY).read_bytes()[:100])
    result = invoke("inspect", str(damaged))
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1


def test_a_missing_file_is_named():
    result = invoke("inspect", "absent.ttnn")
    assert result.exit_code == 2 and "absent.ttnn" in result.stderr


def test_run_gives_random_inputs_of_the_right_kind():
    result = invoke("run", BINARY)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[0] == "output 0: float32 (10, 32)"
    assert result.stdout.splitlines()[1].endswith(" ms")


@pytest.mark.parametrize("module", ["torch_mlir", "torch._dynamo", "rich"])
def test_the_command_itself_imports_little(module):
    code = f"import sys, tt_torch.tools.cli; sys.exit({module!r} in sys.modules)"
    root = Path(__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_version(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda name: {"tt-torch": "1.2.3"}[name])
    assert invoke("--version").stdout == "tt-torch 1.2.3\n"
