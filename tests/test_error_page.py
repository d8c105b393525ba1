"""docs/errors.md has every error and every warning of the package, with its cause and its cure, and no other."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from tt_torch import errors

ROOT = Path(__file__).parents[1]
SECTION = re.compile(r"^### (\w+)\n\n- \*\*Cause:\*\* (?:.+\n)+- \*\*Cure:\*\* (?:.+\n)+", re.MULTILINE)


def test_every_error_and_warning_has_a_cause_and_a_cure() -> None:
    page = (ROOT / "docs" / "errors.md").read_text() + "\n"
    named = re.findall(r"^### (\w+)$", page, re.MULTILINE)
    raised = {name for name, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, Exception)}
    raised.add(errors.DeviceMemoryError.__name__)  # a module imports it when it is first used
    files = (ROOT / "tt_torch").rglob("*.py")
    warned = {
        name for file in files for name in re.findall(r"^class (\w+)\(\w*Warning\):", file.read_text(), re.MULTILINE)
    }
    assert "HostFallbackWarning" in warned
    assert sorted(named) == sorted((raised | warned) - {"TTTorchError"})
    assert [name for name in named if name not in SECTION.findall(page)] == []
