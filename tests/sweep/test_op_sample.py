"""Runs one in twenty samples of the op sweep. They must not be worse than in docs/ops.md, the page of the last sweep.

This takes minutes, so a plain `pytest` leaves it out. `pytest -m sample` runs it, and CI does this.

`tt-torch sweep ops -o results/ops.jsonl; tt-torch sweep docs results/ops.jsonl` runs all samples and updates the page.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tt_torch.records.lines import read
from tt_torch.records.summary import alone, good, slowness
from tt_torch.sweep.ops import DTYPES
from tt_torch.tools.cli import app

PAGE = (Path(__file__).parents[2] / "docs" / "ops.md").read_text()


def rows(title: str) -> list[list[str]]:
    """The cells of the table in a section of the page."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return [re.split(r"(?<!\\) ?\| ?", line)[1:-1] for line in section.splitlines() if line.startswith("|")]


def device_only(dtype: str) -> set[str]:
    """The names of the ops whose samples of this dtype all ran without an op on the host."""
    head, _, *table = rows("All ops")
    column = head.index(dtype)
    found = ((row[0], re.fullmatch(r"(\d+) of \1", row[column])) for row in table)
    return {op for op, match in found if match and match[1] != "0"}


@pytest.mark.sample
@pytest.mark.parametrize("dtype", DTYPES)
def test_sample(dtype: str, tmp_path: Path) -> None:
    output = tmp_path / "ops.jsonl"
    arguments = ["--dtype", dtype, "--fraction", "0.05", "--timeout", "120", "-o", str(output)]
    result = CliRunner().invoke(app, ["sweep", "ops", *arguments])
    assert result.exit_code in (0, 1), result.output
    records = read(output)
    assert len(records) > 60
    known = {row[0] for row in rows("Not right")}
    assert [(r["key"], r["error"], r["message"]) for r in records if not good(r) and r["key"] not in known] == []
    assert [(r["key"], slowness(r)) for r in records if slowness(r)] == []
    full = device_only(dtype)
    back = [r for r in records if r["verdict"] == "match" and not alone(r) and r["key"].split("/")[0] in full]
    assert [(r["key"], r["host_ops"], r["graph_breaks"]) for r in back] == []
