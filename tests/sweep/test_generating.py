"""`tt-torch sweep models --generate`: models that write text, beside eager PyTorch."""

from __future__ import annotations

import pytest
import torch
from typer.testing import CliRunner

from tt_torch.records.lines import read
from tt_torch.sweep.generating import _verdict
from tt_torch.sweep.pages import models_page
from tt_torch.tools.cli import app


@pytest.mark.sample
def test_programs_and_recompilations_are_counted(tmp_path) -> None:
    """Mistral's window is full after a few tokens, which needs a third program. T5's third one is that of the encoder.
    BERT writes no text."""
    output = tmp_path / "g.jsonl"
    done = CliRunner().invoke(app, ["sweep", "models", "--generate", "-k", "^(mistral|t5|bert) ", "-o", str(output)])
    assert done.exit_code == 0, done.output
    records = {record["model"]: record for record in read(output)}
    assert {name: (r["programs"], r["recompilations"]) for name, r in records.items()} == {
        "mistral": (3, 1),
        "t5": (3, 0),
    }
    for record in records.values():
        assert (record["kind"], record["verdict"], record["tokens"]) == ("generation", "match", 40)
        assert record["host_ops"] == record["graph_breaks"] == []


def test_other_tokens_are_wrong() -> None:
    right, wrong = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[1, 2, 0, 4]])
    assert _verdict(right, [right, right]) == {"verdict": "match"}
    assert _verdict(right, [right, wrong])["message"] == "call 2: 75% of the tokens are eager's"
    assert _verdict(right, [right[:, :2]])["verdict"] == "wrong"


def test_the_page_has_a_column_for_each_count() -> None:
    origin = {"commit": "c", "versions": {}, "group": "g"}
    models = [{**origin, "kind": "model", "model": name, "verdict": "match", "pcc": 1.0, "atol": 0.0} for name in "abc"]
    text = {**origin, "kind": "generation", "verdict": "match", "tokens": 40, "programs": 3, "recompilations": 1}
    wrong = {"verdict": "wrong", "error": "Mismatch", "message": "call 1: 5% of the tokens are eager's"}
    page = models_page([*models, {**text, "model": "a"}, {**text, **wrong, "model": "b"}])
    assert "1 of 2 models generate" in page and "3 of 3 run without the host" in page
    assert "| a | g | 1.000000 | 0.0e+00 |  | 40 | 3 | 1 |" in page
    assert "| b | g | 1.000000 | 0.0e+00 |  | wrong: Mismatch: call 1: 5% of the tokens are eager's | 3 | 1 |" in page
    assert "| c | g | 1.000000 | 0.0e+00 |  |  |  |  |" in page


@pytest.mark.parametrize("others", [["--op-by-op"], ["--compiler", "tt-mlir"]])
def test_options_that_do_not_fit_are_refused(others: list[str]) -> None:
    done = CliRunner().invoke(app, ["sweep", "models", "--generate", *others])
    assert done.exit_code == 2 and ("--op-by-op" in done.output or "to generate" in done.output)
