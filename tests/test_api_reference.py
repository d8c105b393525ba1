"""docs/reference.md: it has every public name, and every public name has a docstring."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reference.md").read_text()
MODULES = re.findall(r"^::: (\S+)$", PAGE, re.MULTILINE)
IMPORT = re.compile(r"^\s*from (tt_torch[\w.]*) import ([^#\n]+)", re.MULTILINE)
SNIPPET = re.compile(r"^<!-- run -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def public_names(module: ModuleType) -> list[str]:
    """The names in `__all__`, or a module's own functions and classes. mkdocstrings finds the same."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return getattr(module, "__all__", [name for name in own if not name.startswith("_")])


def is_ours(value: object) -> bool:
    """Whether the docstring is in our Python code, where mkdocstrings finds it."""
    return inspect.getmodule(value).__name__.startswith("tt_torch.") and "pybind11" not in type(value).__name__


def without_docstring(name: str, value: object) -> Iterator[str]:
    """Yields those that have no docstring of their own: the name itself, and the methods and properties of a class."""
    if not (vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)):
        yield name
    for member, code in vars(value).items() if inspect.isclass(value) else ():
        is_code = isinstance(code, (property, classmethod, staticmethod)) or inspect.isroutine(code)
        if is_code and not member.startswith("_") and not inspect.getdoc(code):
            yield f"{name}.{member}"


@pytest.mark.parametrize("module", MODULES)
def test_each_name_has_a_docstring_or_a_sentence(module: str) -> None:
    found = importlib.import_module(module)
    values = {name: getattr(found, name) for name in public_names(found)}
    assert values
    assert [name for name, value in values.items() if not is_ours(value) and f"`{name}`" not in PAGE] == []
    missing = [gap for name, value in values.items() if is_ours(value) for gap in without_docstring(name, value)]
    assert missing == []


def test_what_the_docs_import_is_in_the_reference() -> None:
    public = {module: set(public_names(importlib.import_module(module))) for module in MODULES}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "\n".join(snippet for page in pages for snippet in SNIPPET.findall(page.read_text()))
    imports = [(module, name.strip()) for module, names in IMPORT.findall(text) for name in names.split(",")]
    assert imports
    assert [(module, name) for module, name in imports if name not in public.get(module, ())] == []


def test_the_package_and_its_errors_are_in_the_reference() -> None:
    assert {"tt_torch", "tt_torch.errors", "tt_torch.device.tt"} <= {*MODULES}
