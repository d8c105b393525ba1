"""Runs the IR tests, one per file. `lit -v tests/ir` does the same without pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("file", [str(f.relative_to(HERE)) for f in sorted(HERE.rglob("*.mlir"))])
def test_ir(file: str, tmp_path: Path):
    main = "from lit.main import main; main()"  # lit cannot be run with -m
    lit = [sys.executable, "-c", main, "-v", "--no-progress-bar", "-j1", str(HERE / file)]
    run = subprocess.run(lit, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0 and "PASS: " in run.stdout, run.stdout + run.stderr
