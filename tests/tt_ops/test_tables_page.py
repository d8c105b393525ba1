"""docs/tt_ops.md lists exactly the tables of the file format for which the emulated device has no kernel."""

from __future__ import annotations

import re
from pathlib import Path

import tt_torch.runtime
from tt_torch.wire import schema

ROOT = Path(__file__).parents[2]
SOURCES = Path(tt_torch.runtime.__file__).parent / "src"


def test_the_page_lists_the_tables_without_a_kernel() -> None:
    wire = schema.load()
    tables = set(wire.enum("tt.target.ttnn.OpType").refs) - {"NONE"}
    kernels = {op for file in SOURCES.rglob("*.cpp") for op in re.findall(r'\{"(\w+Op)", \w+', file.read_text())}
    page = (ROOT / "docs" / "tt_ops.md").read_text()
    listed = re.findall(r"`(\w+Op)`", page.partition("<!-- tables -->")[2].partition("<!-- tables end -->")[0])
    assert sorted(listed) == sorted(tables - kernels)
    assert f"has {len(tables)} tables of ops" in page and f"kernels for {len(tables & kernels)} of them" in page
