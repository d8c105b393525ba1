"""The optimizer asks an op model which forms of an op exist and how much L1 each takes. The tests' model is Python."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.errors import ConfigError, EnvironmentMissingError, OverrideError
from tt_torch.mlir.ttnn.optimizer import op_model
from tt_torch.mlir.ttnn.optimizer.op_model import Answer
from tt_torch.tools.why import decisions, show
from tt_torch.wire import facts
from tt_torch.wire.decode import decode

MODEL = nn.Sequential(
    nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256), nn.Linear(256, 512), nn.LayerNorm(512)
).eval()
X = torch.randn(512, 256)
OPTIONS = {"dtype": "bf16", "optimization_level": 2}


def places(binary):
    """The places of the results of the entry program's device ops."""
    ops = facts.ops(decode(binary)["programs"][0])
    configs = [t.memory_config for op in ops for t in op.results if t.memory_config]
    return [(each["buffer_type"], each["tensor_memory_layout"]) for each in configs]


@pytest.fixture
def answers(monkeypatch):
    """Compiles with the answers of a function, which gets the places of a small program's results. Returns what was
    compiled and how often the model was asked."""

    def compiled(answer, model=MODEL, x=X, **options):
        asked = []

        class Model:
            def __init__(self, config):
                assert config.op_model == "ttnn"

            def ask(self, binary):
                asked.append(places(binary))
                return answer(asked[-1])

            def close(self):
                asked.append("closed")

        found = {op_model.GROUP: [SimpleNamespace(load=lambda: Model)]}
        monkeypatch.setattr(op_model, "entry_points", lambda group, name: found[group])
        made = tt_torch.compile_model(model, (x,), CompilerConfig(**OPTIONS | {"op_model": "ttnn"} | options))
        assert asked.pop() == "closed"
        return made, len(asked)

    return compiled


def test_without_answers_the_rules_decide(answers):
    by_rules = tt_torch.compile_model(MODEL, (X,), CompilerConfig(**OPTIONS))
    made, asked = answers(lambda places: None)
    assert asked > 3
    assert places(made.binary) == places(by_rules.binary)
    assert any(layout != "Interleaved" for _, layout in places(made.binary))


def test_what_the_model_refuses_is_not_chosen(answers):
    made, _ = answers(lambda places: Answer("no shards" * any(layout != "Interleaved" for _, layout in places), 0))
    assert {layout for _, layout in places(made.binary)} == {"Interleaved"}
    by_rules = tt_torch.compile_model(MODEL, (X,), CompilerConfig(**OPTIONS))
    assert torch.equal(made(X), by_rules(X))


def test_the_model_says_how_much_l1_an_op_takes(answers):
    made, _ = answers(lambda places: Answer("", 2**22 * any(buffer == "L1" for buffer, _ in places)))
    assert {buffer for buffer, _ in places(made.binary)} == {"DRAM"}


def test_equal_ops_are_asked_about_once(answers):
    layers = [nn.Linear(256, 256) for _ in range(6)]
    _, once = answers(lambda places: Answer("", 0), nn.Sequential(*layers[:3]).eval())
    _, again = answers(lambda places: Answer("", 0), nn.Sequential(*layers).eval())
    assert again == once


def test_weights_in_banks_are_arguments_of_a_question(answers):
    """The model is asked about a call, and not about what prepares its weights."""
    seen, layer = [], nn.Linear(1024, 2816, bias=False).eval()
    options = {"model": layer, "x": torch.randn(1, 1024), "enable_dram_sharded_matmul": True}
    made, _ = answers(lambda places: seen.append(places) or Answer("", 0), **options)
    products = [op for op in facts.ops(decode(made.binary)["programs"][0]) if op.name == "MatmulOp"]
    assert [op.tensor("b").memory_config["tensor_memory_layout"] for op in products] == ["WidthSharded"]
    assert not any(("DRAM", "WidthSharded") in each for each in seen)


def test_an_override_that_the_model_refuses_is_an_error(answers):
    overrides = {"0": {"override_output_layout": "l1:interleaved"}}
    with pytest.raises(OverrideError, match="the op model refuses it: such a grid"):
        answers(lambda places: Answer("such a grid", 0), optimizer_overrides=overrides)


def test_what_the_model_refuses_is_shown_with_the_reason_below(answers, monkeypatch, tmp_path, capsys):
    answers(lambda places: Answer("no shards" * any(layout != "Interleaved" for _, layout in places), 0))
    program = "import torch\ndef net():\n    return torch.nn.Linear(256, 512).eval(), (torch.randn(512, 256),)\n"
    (tmp_path / "net.py").write_text(program)
    for name, value in OPTIONS.items():
        monkeypatch.setenv(f"TT_TORCH_{name.upper()}", str(value))
    monkeypatch.setenv("TT_TORCH_OP_MODEL", "ttnn")
    found = decisions(f"{tmp_path / 'net.py'}:net", "linear")
    show(found)
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if "no shards" in line] == ["refused: no shards"]
    assert printed.count("refused") > 2
    assert "chosen" in printed


def test_convolutions_are_asked_about_with_their_weights(answers):
    """The weights are prepared for the form that is asked about, so the small program has their preparation."""
    model, x = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.Conv2d(64, 64, 1)).eval(), torch.randn(1, 64, 16, 16)
    made, asked = answers(lambda places: Answer("", 0), model, x)
    assert asked
    assert any(layout != "Interleaved" for _, layout in places(made.binary))
    with torch.no_grad():
        assert (made(x) - model(x)).abs().max() < 0.05


def test_the_option_needs_an_optimizer_and_a_package_that_has_the_model(answers, monkeypatch):
    with pytest.raises(ConfigError, match="unless optimization_level is 1 or 2"):
        answers(lambda places: None, optimization_level=0)
    monkeypatch.setattr(op_model, "entry_points", lambda group, name: ())
    with pytest.raises(EnvironmentMissingError, match="no installed package has"):
        tt_torch.compile_model(MODEL, (X,), CompilerConfig(**OPTIONS, op_model="ttnn"))
