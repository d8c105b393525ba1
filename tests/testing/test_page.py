"""docs/testing_models.md as written: its test, its commands, and the table at the end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from openpyxl import load_workbook

PAGE = (Path(__file__).parents[2] / "docs" / "testing_models.md").read_text()
PLUGIN = ["-p", "no:tt_torch", "-p", "tt_torch.testing.plugin", "-n", "0"]  # whether or not it is installed


def run(folder: Path, command: str) -> None:
    tool, *arguments = command.split()
    module = ["pytest", *PLUGIN] if tool == "pytest" else ["tt_torch.tools.cli"]
    files = [str(p.relative_to(folder)) for pattern in arguments if "*" in pattern for p in folder.glob(pattern)]
    plain = [a for a in arguments if "*" not in a]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "TT_TORCH_", "COV"))}
    done = subprocess.run(
        [sys.executable, "-m", *module, *plain, *files],
        cwd=folder, env=environment | {"TT_TORCH_JOBS": "1"}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.slow
def test_from_a_folder_of_models_to_a_table(tmp_path: Path):
    ((name, program),) = re.findall(r"^<!-- file (\S+) -->\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(program)
    commands = re.findall(r"^    ((?:pytest|tt-torch) .*)$", PAGE, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        run(tmp_path, command)
    book = load_workbook(tmp_path / "results" / "report.xlsx")
    header, row = ([cell.value for cell in cells] for cells in book["Per Model Status"].rows)
    figures = dict(zip(header, row, strict=True))
    assert (figures["Model"], figures["Package"], figures["Status"]) == ("mlp", "generality", "match")
    assert figures["Depth"] == "PASSED" and figures["PCC"] > 0.9999 and figures["Device ops"] is None
    names = [cells[0].value for cells in book["mlp"].rows]
    assert {"aten.addmm.default", "aten.gelu.default"} <= set(names)
    page = (tmp_path / "results" / "report.html").read_text()
    assert re.search(r"<td>mlp</td>.*match", page) and "aten.gelu.default" in page
