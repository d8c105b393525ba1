"""The registry of models, and a sweep over a file of models."""

from __future__ import annotations

import importlib
import json

import pytest
from torch import nn
from typer.testing import CliRunner

from tt_torch.errors import ModelsFileError
from tt_torch.sweep.catalogue import load
from tt_torch.sweep.models import run_model
from tt_torch.sweep.registry import randomize
from tt_torch.tools.cli import app

FILE = """
from torch import nn, ones
from tt_torch.sweep.registry import Model

class Wrong(nn.Module):
    calls = 0
    def forward(self, x):
        Wrong.calls += 1  # eager is called first, so the compiled model looks wrong
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


def test_a_model_of_the_user_keeps_its_weights(tmp_path, monkeypatch):
    net = "net = nn.Linear(2, 2)\nMODELS = [Model('net', lambda: (net, {'input': ones(1, 2)}))]\n"
    (tmp_path / "trained_models.py").write_text(FILE.partition("class")[0] + net)
    monkeypatch.syspath_prepend(tmp_path)
    net = importlib.import_module("trained_models").net
    before = net.weight.detach().clone()
    assert run_model("net", "trained_models", "tt-torch")["verdict"] == "match"
    assert (net.weight == before).all()


@pytest.mark.slow
def test_a_file_of_models(tmp_path):
    source, output = tmp_path / "models.py", tmp_path / "models.jsonl"
    source.write_text(FILE)
    result = CliRunner().invoke(app, ["sweep", str(source), "-o", str(output)])
    assert result.exit_code == 1, result.output
    right, wrong = (json.loads(line) for line in output.read_text().splitlines())
    assert right["verdict"] == "match" and right["pcc"] > 0.999 and right["binary_bytes"] and not right["host_ops"]
    assert wrong["verdict"] == "wrong" and wrong["pcc"] < 0.99


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("Linear(2, 2)", "returns Linear, not a module and a dict"),
        ("(Linear(2, 2), (ones(1, 2),))", "returns Linear and tuple, not a module and a dict"),
        ("(Linear(2, 2).forward, {'input': ones(1, 2)})", "returns method and dict, not"),
        ("(Linear(2, 2), {0: ones(1, 2)})", "returns Linear and dict, not"),
        ("None", "returns NoneType, not"),
    ],
)
def test_a_model_of_the_wrong_form(tmp_path, made, said):
    source = tmp_path / "models.py"
    head = "from torch import ones\nfrom torch.nn import Linear\nfrom tt_torch.sweep.registry import Model\n"
    source.write_text(f"{head}MODELS = [Model('m', lambda: {made})]")
    with pytest.raises(ModelsFileError, match=said):
        run_model("m", str(source), "tt-torch")


def test_a_model_that_eager_cannot_run_is_an_error(tmp_path):
    source, output = tmp_path / "models.py", tmp_path / "models.jsonl"
    source.write_text(
        "from torch import ones\nfrom torch.nn import Linear\nfrom tt_torch.sweep.registry import Model\n"
        "MODELS = [Model('m', lambda: (Linear(2, 2), {'x': ones(1, 2)}))]"
    )
    result = CliRunner().invoke(app, ["sweep", str(source), "-o", str(output)])
    assert result.exit_code == 1
    record = json.loads(output.read_text())
    assert record["verdict"] == "error" and record["message"].startswith("eager PyTorch raises TypeError: ")
    assert "pcc" not in record, "nothing was compared"


def test_a_file_without_models(tmp_path):
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(ModelsFileError, match="no list MODELS"):
        load(str(tmp_path / "empty.py"))
    (tmp_path / "empty.py").write_text("MODELS = [1]")
    with pytest.raises(
        ModelsFileError, match=r"MODELS has an entry of type int, not a tt_torch\.sweep\.registry\.Model"
    ):
        load(str(tmp_path / "empty.py"))
    (tmp_path / "empty.py").write_text("\n1 / 0")
    with pytest.raises(ModelsFileError, match=r"empty\.py cannot be loaded: line 2: ZeroDivisionError"):
        load(str(tmp_path / "empty.py"))
