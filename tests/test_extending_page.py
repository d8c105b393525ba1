"""docs/extending.md, followed in an empty folder: a package outside of the repository brings its ops to the device."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_docs import EDIT, FILE, ROOT, WHOLE, call, edit, run

PAGE = (ROOT / "docs" / "extending.md").read_text()
APPEND = re.compile(r"^<!-- append (\S+) -->\n```python\n(.*?)^```$", WHOLE)
SAID = re.compile(r"^ {4}(mylib\..*)$", re.MULTILINE)


SCRIPT = """
import sys, torch, tt_torch
sys.path.insert(0, "")
for name in sys.argv[1:]:
    exec(compile(open(name).read(), name, "exec"))
"""


def on_host(folder: Path, *others: str) -> list[str]:
    """Runs program.py and other files; returns the lines of the warning about ops on the host."""
    done = run("-W", "always", "-c", SCRIPT, "program.py", *others, folder=folder)
    assert done.stdout == "equal\n"
    return re.findall(r"^ +(mylib\..*)$", done.stderr, re.MULTILINE)


@pytest.mark.slow
def test_the_page_as_written(tmp_path: Path) -> None:
    for name, text in FILE.findall(PAGE):
        (tmp_path / name).write_text(text)
    said = SAID.findall(PAGE)
    assert len(said) == 3 and on_host(tmp_path) == said[:2]
    ((file, *how),) = EDIT.findall(PAGE)
    edit(tmp_path / file, *how)
    (_, lowering), (_, kernel) = APPEND.findall(PAGE)
    library = tmp_path / "mylib.py"
    library.write_text(library.read_text() + lowering)
    assert on_host(tmp_path) == said[2:]
    library.write_text(library.read_text() + kernel)
    assert on_host(tmp_path, "write_program.py") == []
    written = (tmp_path / "on_ttnn.py").read_text()
    assert "import mylib_ttnn as mylib_ttnn\n" in written and " = mylib_ttnn.erfcx(" in written
    assert run("load.py", "--import", folder=tmp_path).stdout == "(4, 40)\n"
    missing = call("load.py", folder=tmp_path)
    assert "tt_torch.errors.KernelMissingError: " in missing.stderr
    assert "the program has the op mylib::erfcx.default, and this process has no kernel of it" in missing.stderr
