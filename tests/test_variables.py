"""Unknown environment variables are warned of, and the list of known variables is complete."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from forked import Server

from tt_torch import user_code
from tt_torch.config import CompilerConfig, option_variables
from tt_torch.variables import OTHERS, UnknownVariableWarning, tell_unknown, unknown

ROOT = Path(__file__).parents[1]
# Words of this form that no program reads from its environment: an option of CMake, and misspelt names in tests.
NO_VARIABLES = {
    "TT_TORCH_SANITIZE",
    "TT_TORCH_ZZZ",
    "TT_TORCH_DTYPES",
    "TT_TORCH_FALLBAK",
    "TT_TORCH_",
    "TT_TORCH_CONSTEVALL",
}


@pytest.fixture(autouse=True)
def _nothing_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_code, "_once", set())


def texts() -> Iterator[str]:
    """Yields the text of each program, script and page of the repository."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if Path(name).suffix in {".py", ".cpp", ".h", ".sh", ".md", ".txt", ".toml", ".yml", ".yaml", ".cmake", ""}:
            yield (ROOT / name).read_text(errors="replace")


def test_each_variable_that_the_repository_names_is_known():
    """A name that is missing belongs in tt_torch/variables.py, unless it is an option."""
    named = {name for text in texts() for name in re.findall(r"\bTT_TORCH_[A-Z0-9_]*", text)}
    assert named - NO_VARIABLES == {n for n in (*option_variables(), *OTHERS) if n.startswith("TT_TORCH_")}


def test_unknown_variables_and_the_nearest_names():
    given = {
        "TT_TORCH_FALLBAK": "error",
        "TT_TORCH_ZZZ": "1",
        "TT_TORCH_HOME": "/",
        "TT_TORCH_DTYPE": "bf16",
        "PATH": "",
    }
    assert unknown(given, option_variables()) == {
        "TT_TORCH_FALLBAK": "; did you mean 'TT_TORCH_FALLBACK'?",
        "TT_TORCH_ZZZ": "",
    }
    assert unknown({"TT_TORCH_FALLBAK": ""}, option_variables()) == {}


def test_one_warning_names_all_of_them_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TT_TORCH_FALLBAK", "error")
    monkeypatch.setenv("TT_TORCH_CONSTEVALL", "1")
    with pytest.warns(UnknownVariableWarning) as told:
        CompilerConfig().with_env()
        CompilerConfig.from_env()
        tell_unknown(option_variables())
    (warning,) = told
    assert "TT_TORCH_FALLBAK; did you mean 'TT_TORCH_FALLBACK'?" in str(warning.message)
    assert "TT_TORCH_CONSTEVALL; did you mean 'TT_TORCH_CONSTEVAL'?" in str(warning.message)


def test_no_warning_for_known_ones(monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder):
    for name in OTHERS:
        monkeypatch.setenv(name, "1")
    CompilerConfig().with_env()
    CompilerConfig().with_env({"TT_TORCH_FALLBAK": "error"})  # not the environment of this process
    assert [w for w in recwarn if issubclass(w.category, UnknownVariableWarning)] == []


def test_a_program_with_a_misspelt_variable_is_told(forks: Server):
    code = "import torch; torch.compile(torch.relu, backend='tt')(torch.ones(2)); torch._dynamo.reset();"
    done = forks.run("-c", code + code, env=os.environ | {"TT_TORCH_FALLBAK": "error"})
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("UnknownVariableWarning") == 1 and "TT_TORCH_FALLBACK" in done.stderr
