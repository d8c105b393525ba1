"""Files and functions that are short enough to be read at once: CONTRIBUTING.md has the limits."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE, FUNCTION = 400, 40  # lines


def tracked(*patterns: str) -> list[Path]:
    found = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return [ROOT / name for name in found.stdout.splitlines()]


def long_functions(source: str) -> Iterator[str]:
    """Yields the functions of a file that have too many lines. Their docstrings and decorators are not counted."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            first = node.body[0]
            about = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) is not None else 0
            if node.end_lineno - node.lineno + 1 - about > FUNCTION:
                yield node.name


def test_files_are_short() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in tracked("*.py", "*.cpp", "*.h", "*.cmake")}
    assert len(lines) > 900 and not {str(path): count for path, count in lines.items() if count > FILE}


def test_functions_of_the_package_are_short() -> None:
    long = {str(path): names for path in tracked("tt_torch/*.py") if (names := list(long_functions(path.read_text())))}
    assert not long


def test_a_long_function_is_found() -> None:
    line = "    x = 1\n"
    assert list(long_functions("def f():\n" + FUNCTION * line)) == ["f"]
    assert not list(long_functions('def f():\n    """A.\n\n    B.\n    """\n' + (FUNCTION - 1) * line))
