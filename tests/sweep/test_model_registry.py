"""The registry of models, and a sweep over a file of models."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from torch import nn
from typer.testing import CliRunner

from tt_torch.errors import ModelsFileError
from tt_torch.sweep.registry import load, randomize
from tt_torch.tools.cli import app

FILE = """
from torch import nn, ones
from tt_torch.sweep.registry import Model

class Wrong(nn.Module):
    calls = 0
    def forward(self, x):
        Wrong.calls += 1  # eager is called first; a wrong compiler would look like this
        return x.cos() if Wrong.calls > 1 else x.sin()

MODELS = [
    Model("linear", lambda: (nn.Linear(4, 3), {"input": ones(2, 4)})),
    Model("wrong", lambda: (Wrong(), {"x": ones(5).cumsum(0)})),
]
"""


def test_names_are_unique():
    pytest.importorskip("transformers")
    pytest.importorskip("diffusers")
    names = [model.name for model in load()]
    assert len(names) == len(set(names)) >= 70


def test_random_values_reach_every_parameter_and_statistic():
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    before = {name: value.clone() for name, value in module.state_dict().items() if value.is_floating_point()}
    randomize(module)
    after = module.state_dict()
    assert all((after[name] != value).all() for name, value in before.items())
    assert module[0].weight.std().item() == pytest.approx(27**-0.5, rel=0.3)


@pytest.mark.slow
def test_a_file_of_models(tmp_path):
    source, output = tmp_path / "models.py", tmp_path / "models.jsonl"
    source.write_text(FILE)
    result = CliRunner().invoke(app, ["sweep", str(source), "-o", str(output)])
    assert result.exit_code == 1, result.output
    right, wrong = (json.loads(line) for line in output.read_text().splitlines())
    assert right["verdict"] == "match" and right["pcc"] > 0.999 and right["binary_bytes"] and not right["host_ops"]
    assert wrong["verdict"] == "wrong" and wrong["pcc"] < 0.99


def test_a_file_without_models(tmp_path):
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(ModelsFileError, match="no list MODELS"):
        load(str(tmp_path / "empty.py"))
    (tmp_path / "empty.py").write_text("\n1 / 0")
    with pytest.raises(ModelsFileError, match=r"empty\.py: line 2: ZeroDivisionError"):
        load(str(tmp_path / "empty.py"))


SLOW_FILE = """
import time
from torch import nn, ones
from tt_torch.sweep.registry import Model

class Slow(nn.Identity):
    def __init__(self):
        super().__init__()
        time.sleep(0.5)

MODELS = [Model(f"slow_{i}", lambda: (Slow(), {"input": ones(1)})) for i in range(8)]
"""


@pytest.mark.slow
def test_a_killed_sweep_goes_on(tmp_path):
    """First a worker is killed, then the sweep itself: nothing is lost, nothing runs twice."""
    source, output = tmp_path / "models.py", tmp_path / "models.jsonl"
    source.write_text(SLOW_FILE)
    command = [sys.executable, "-c", "from tt_torch.tools.cli import app; app()", "sweep", "models", str(source)]
    with subprocess.Popen([*command, "-o", str(output)], stdout=subprocess.DEVNULL) as sweep:
        wait_for(output, 1)
        workers = [p for p in descendants(sweep.pid) if not descendants(p)]
        os.kill(max(workers), signal.SIGKILL)  # the newest process is the worker
        wait_for(output, 4)
        sweep.kill()
    before = output.read_text().splitlines()
    subprocess.run([*command, "-o", str(output)], check=False, stdout=subprocess.DEVNULL, timeout=300)
    after = output.read_text().splitlines()
    records = [json.loads(line) for line in after]
    assert after[: len(before)] == before
    assert sorted(record["key"] for record in records) == [f"slow_{i}" for i in range(8)]
    assert [r["error"] for r in records if r["verdict"] != "match"] == ["SIGKILL"]


def wait_for(output, lines):
    deadline = time.monotonic() + 200
    while not output.exists() or output.read_text().count("\n") < lines:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def descendants(pid):
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [process for child in children for process in [child, *descendants(child)]]
