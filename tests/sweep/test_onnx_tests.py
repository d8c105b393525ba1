"""`tt-torch sweep onnx`: its records and its page. CI runs one in ten of ONNX's backend tests, too."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from tt_torch.errors import StageError, UnsupportedOpError
from tt_torch.records.lines import read
from tt_torch.sweep import onnx_tests
from tt_torch.tools.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "onnx_tests.md"
# At least this share of the sampled tests with types of TTNN must be right. The page has the share of all such tests.
RIGHT_IN_SAMPLE = 0.95


def run(*arguments: str) -> None:
    result = CliRunner().invoke(app, ["sweep", *arguments])
    assert result.exit_code in (0, 1), result.output


@pytest.mark.slow
def test_a_right_and_two_refused_tests(tmp_path: Path) -> None:
    """The sizes of Reshape become constants. TTNN has no strings, and there is no rule for Gradient."""
    output = tmp_path / "onnx.jsonl"
    keys = "^(node/(reshape_reordered_all_dims|string_concat)|simple/gradient_of_add)$"
    run("onnx", "-k", keys, "-o", str(output))
    got = {record["key"]: record for record in read(output)}
    assert {key: (r["dtype"], r["verdict"], r.get("error", "")) for key, r in got.items()} == {
        "node/reshape_reordered_all_dims": (onnx_tests.HELD, "match", ""),
        "node/string_concat": ("string", "refused", "CompileError"),
        "simple/gradient_of_add": (onnx_tests.HELD, "refused", "UnsupportedOpError"),
    }
    assert got["node/reshape_reordered_all_dims"]["constants"] == ["shape"]
    run("docs", str(output), "-o", str(tmp_path))
    page = (tmp_path / "onnx_tests.md").read_text()
    assert "1 of the 2 tests with types that TTNN can hold are right (50.0%)." in page
    assert "| string | 0 | 0 | 1 | 0 | 0 | 0 | 1 |" in page


@pytest.mark.parametrize(
    ("raised", "verdict"),
    [
        (UnsupportedOpError("o", "s", "l"), "refused"),
        (StageError("s", ValueError(), None), "error"),
        (KeyError(), "error"),
    ],
)
def test_only_errors_that_say_what_is_not_supported_are_refusals(monkeypatch, raised: Exception, verdict: str) -> None:
    def fails(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(onnx_tests, "compile_onnx", fails)
    record = onnx_tests.run_test("node", "test_relu")
    assert (record["verdict"], record["error"]) == (verdict, type(raised).__name__)


def test_another_value_is_wrong(monkeypatch) -> None:
    monkeypatch.setattr(onnx_tests, "compile_onnx", lambda *_, **__: lambda x: torch.relu(x) + 1e-3)
    assert onnx_tests.run_test("node", "test_relu")["verdict"] == "wrong"


@pytest.mark.sample
def test_onnx_sample(tmp_path: Path) -> None:
    """A test may be wrong or end with an internal error only if the page lists it.

    Only the whole sweep runs the large models.
    """
    output = tmp_path / "onnx.jsonl"
    run("onnx", "-k", "^(?!real/)", "--fraction", "0.1", "-j", "2", "-o", str(output))
    records = read(output)
    assert len(records) > 150
    known = PAGE.read_text().partition("## Not right and not refused")[2].partition("## Refused")[0]
    bad = [r for r in records if r["verdict"] not in ("match", "refused") and f"| {r['key']} |" not in known]
    assert [(r["key"], r["message"]) for r in bad] == []
    held = [r["verdict"] == "match" for r in records if r["dtype"] == onnx_tests.HELD]
    assert sum(held) >= RIGHT_IN_SAMPLE * len(held)
