"""`tt-torch sweep onnx-models`: its records and its page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from tt_torch.errors import StageError, UnsupportedOpError
from tt_torch.records.lines import read
from tt_torch.sweep import onnx_models
from tt_torch.sweep.onnx_models_page import page
from tt_torch.tools.cli import app

MODEL = "speech half"  # a small model, from a package that the demos need, too


@pytest.mark.slow
def test_a_model_of_a_package(tmp_path: Path) -> None:
    output = tmp_path / "models.jsonl"
    for arguments in (
        ["onnx-models", "-k", f"/{MODEL}$", "-o", str(output)],
        ["docs", str(output), "-o", str(tmp_path)],
    ):
        result = CliRunner().invoke(app, ["sweep", *arguments])
        assert result.exit_code == 0, result.output
    (record,) = read(output)
    assert (record["key"], record["verdict"], record["nodes"]) == (f"silero-vad/{MODEL}", "match", 96)
    assert sum(record["device_ops"].values()) > 50 and record["rtol"] < 1e-4
    text = (tmp_path / "onnx_models.md").read_text()
    assert "1 of 1 models are right" in text and f"| {record['group']} | {MODEL} | 96 |" in text


def test_a_package_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = replace(onnx_models.MODELS[0], package="no-such-package")
    monkeypatch.setattr(onnx_models, "MODELS", [gone])
    assert onnx_models.run_model(gone.name) == {"verdict": "absent"}


@pytest.mark.parametrize(
    ("raised", "verdict"),
    [(UnsupportedOpError("o", "s", "l"), "refused"), (StageError("s", ValueError(), None), "error")],
)
def test_an_error_is_in_the_record_and_on_the_page(monkeypatch, raised: Exception, verdict: str) -> None:
    def fails(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(onnx_models, "compile_onnx", fails)
    record = onnx_models.run_model(MODEL)
    assert (record["verdict"], record["error"]) == (verdict, type(raised).__name__)
    text = page([{**record, "key": f"silero-vad/{MODEL}", "commit": "c", "versions": {}}])
    assert "0 of 1 models are right" in text and f"| {verdict}: " in text


@pytest.mark.parametrize(
    ("got", "verdict"),
    [
        ([torch.tensor([1.0, 1000.5]), torch.tensor([3])], "match"),
        ([torch.tensor([1.0, 1002.0]), torch.tensor([3])], "wrong"),
        ([torch.tensor([1.0, 1000.0]), torch.tensor([4])], "wrong"),
        ([torch.tensor([1.0, float("nan")]), torch.tensor([3])], "wrong"),
        ([torch.tensor([[1.0, 1000.0]]), torch.tensor([3])], "wrong"),
        ([torch.tensor([1.0, 1000.0]), torch.tensor([3.0])], "wrong"),
        ([torch.tensor([1.0, 1000.0])], "wrong"),
    ],
)
def test_what_counts_as_right(got: list[torch.Tensor], verdict: str) -> None:
    expected = [torch.tensor([1.0, 1000.0]), torch.tensor([3])]
    assert onnx_models._difference(got, expected)["verdict"] == verdict
    assert onnx_models._difference([torch.tensor([True])], [torch.tensor([verdict == "match"])])["verdict"] == verdict


def test_each_model_has_a_name_of_its_own() -> None:
    names = [model.name for model in onnx_models.MODELS]
    assert len(set(names)) == len(names)
