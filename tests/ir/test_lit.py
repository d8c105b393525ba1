"""Runs the IR tests, one per file. `lit -v tests/ir` does the same without pytest."""

from __future__ import annotations

from pathlib import Path

import lit.discovery
import lit.LitConfig
import pytest

HERE = Path(__file__).parent
CONFIG = lit.LitConfig.LitConfig(
    progname="lit",
    path=[],
    diagnostic_level="note",
    useValgrind=False,
    valgrindLeakCheck=False,
    valgrindArgs=[],
    noExecute=False,
    debug=False,
    isWindows=False,
    order="lexical",
    params={},
)


@pytest.mark.parametrize("file", [str(f.relative_to(HERE)) for f in sorted(HERE.rglob("*.mlir"))])
def test_ir(file: str):
    (test,) = lit.discovery.find_tests_for_inputs(CONFIG, [str(HERE / file)])
    result = test.config.test_format.execute(test, CONFIG)
    assert result.code.name == "PASS", result.output
