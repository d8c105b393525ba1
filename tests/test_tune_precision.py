"""`tt-torch tune-precision`: the search, with costs and losses that are drawn, and the command, on a small model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import tt_torch
from tt_torch.tools.cli import app
from tt_torch.tuning.search import LEVELS, Choice, Search, Trial, pareto

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.first, self.last = nn.Embedding(9, 64), nn.Linear(64, 128), nn.Linear(128, 32, bias=False)

    def forward(self, ids):
        return {"logits": self.last(self.first(self.embed(ids)).relu())}

def small():
    torch.manual_seed(0)
    return Model().eval(), (torch.arange(8).view(2, 4),)

def function():
    return lambda x: x + 1, (torch.ones(2),)

def without():
    return nn.Embedding(9, 4), (torch.arange(3),)
"""
MOST = len(LEVELS) - 1


@st.composite
def losses(draw: st.DrawFn) -> list[list[float]]:
    """For each layer, the loss at each level. A more precise level never loses more."""
    layer = st.lists(st.floats(0, 0.01), min_size=MOST, max_size=MOST).map(lambda x: [*sorted(x, reverse=True), 0.0])
    return draw(st.lists(layer, min_size=1, max_size=6))


@given(losses(), st.floats(0.95, 1.0), st.data())
def test_the_search_keeps_the_goal_and_is_no_dearer_than_one_level_for_all(
    lost: list[list[float]], goal: float, data: st.DataObject
) -> None:
    costs = [data.draw(st.floats(0.1, 10.0)) for _ in lost]
    measured: list[Choice] = []

    def measure(choice: Choice) -> Trial:
        measured.append(choice)
        pcc = 1 - sum(layer[level] for layer, level in zip(lost, choice, strict=True))
        return Trial(choice, pcc, sum(c * (1 + level) for c, level in zip(costs, choice, strict=True)), 0)

    search = Search(measure, len(lost), goal)
    best = search.run()
    assert best is not None and best.pcc >= goal
    assert len(measured) == len(set(measured)) <= len(LEVELS) + MOST * (2 * len(lost) + 1)
    whole = [search.trials[(level,) * len(lost)] for level in range(len(LEVELS))]
    assert best.seconds <= min(trial.seconds for trial in whole if trial.pcc >= goal)
    one_lower = [best.choice[:i] + (n - 1,) + best.choice[i + 1 :] for i, n in enumerate(best.choice) if n]
    assert all(
        search.trials[c].pcc < goal or search.trials[c].cost >= best.cost for c in one_lower if c in search.trials
    )
    front = pareto(list(search.trials.values()))
    assert [t.pcc for t in front] == sorted({t.pcc for t in front})
    assert not any(t.cost < f.cost and t.pcc >= f.pcc for f in front for t in search.trials.values())


def test_a_goal_that_no_level_reaches() -> None:
    assert Search(lambda choice: Trial(choice, 0.5, 1.0, 1), 3, 0.9).run() is None


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TT_TORCH_DTYPE", "bf16")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(MODEL)
    return tmp_path


def test_the_file_that_it_writes_is_a_precision(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = CliRunner().invoke(app, ["tune-precision", "net.py:small", "--pcc", "0.995", "-o", "p.json", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["layers"] == ["first", "last"] and found["best"]["pcc"] >= 0.995
    by_layer = json.loads((model / "p.json").read_text())
    assert by_layer == {
        name: dict(LEVELS[level].options) for name, level in zip(found["layers"], found["best"]["choice"], strict=True)
    }
    page = (model / "p.html").read_text()
    assert "not beaten" in page and "goal 0.995" in page
    monkeypatch.setenv("TT_TORCH_PRECISION", "p.json")
    namespace: dict[str, object] = {}
    exec(MODEL, namespace)
    net, args = namespace["small"]()  # type: ignore[operator]
    device = tt_torch.runtime.Device(exact=True)
    with torch.no_grad():
        got = tt_torch.compile_model(net, args, options={"devices": [device]})(*args)["logits"]
        assert tt_torch.accuracy.calculate_pcc(got, net(*args)["logits"]) == pytest.approx(
            found["best"]["pcc"], abs=1e-9
        )


def test_a_goal_that_is_not_reached_writes_no_file(model: Path) -> None:
    done = CliRunner().invoke(app, ["tune-precision", "net.py:small", "--pcc", "1"])
    assert done.exit_code == 1 and "is not reached" in done.output and not (model / "precision.json").exists()


def test_a_file_that_cannot_be_written_is_known_before_the_search(model: Path) -> None:
    for output in (".", "/proc/1/p.json"):
        done = CliRunner().invoke(app, ["tune-precision", "net.py:small", "-o", output])
        assert done.exit_code == 1 and done.output.startswith("error: [Errno ") and done.output.count("\n") == 1


def test_the_page_does_not_replace_the_file(model: Path) -> None:
    done = CliRunner().invoke(app, ["tune-precision", "net.py:small", "-o", "p.html"])
    assert done.exit_code == 2 and "the page gets the name p.html" in done.output and not (model / "p.html").exists()


def test_a_variable_does_not_replace_the_levels_of_all_trials(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TT_TORCH_PRECISION", "{}")
    done = CliRunner().invoke(app, ["tune-precision", "net.py:small"])
    assert done.exit_code == 2 and "TT_TORCH_PRECISION is set" in done.output


@pytest.mark.parametrize(
    ("name", "said"), [("function", "only modules have layers"), ("without", "no weights of matrix")]
)
def test_models_without_layers_are_refused(model: Path, name: str, said: str) -> None:
    done = CliRunner().invoke(app, ["tune-precision", f"net.py:{name}"])
    assert done.exit_code == 2 and said in done.output
