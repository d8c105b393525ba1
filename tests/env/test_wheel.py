"""The wheel as users install it: into an empty environment of their Python, in which README's example runs.

PyTorch is installed twice for each version, which takes minutes. CI runs it by `pytest -m build -n 0`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tt_torch.codegen.environment import interpreter

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
pytestmark = pytest.mark.build

# Names that a checkout or a compiler would give to the program, if it needed one.
HIDDEN = ("TT_TORCH_HOME", "PYTHONPATH", "VIRTUAL_ENV", "CXX", "CC")

OTHER = "3.12"
HEADER = "import os, sysconfig; os.stat(os.path.join(sysconfig.get_path('include'), 'Python.h'))"


def has_header(python: Path) -> bool:
    """Whether C++ modules can be built for an interpreter."""
    return subprocess.run([python, "-c", HEADER], capture_output=True, check=False).returncode == 0


def run(*command: object, cwd: Path, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN} | variables
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that is removed, because pytest would keep gigabytes of packages."""
    yield tmp_path
    shutil.rmtree(tmp_path)


def test_a_wheel_of_this_python(folder: Path) -> None:
    runs_in_an_empty_environment(Path(sys.executable), folder)


def test_a_wheel_of_another_python(folder: Path) -> None:
    python = interpreter(OTHER)
    if python is None or not has_header(python):
        pytest.skip(f"this machine has no Python {OTHER} with its headers")
    runs_in_an_empty_environment(python, folder)


def runs_in_an_empty_environment(python: Path, folder: Path) -> None:
    (torch,) = re.findall(r'^  "(torch==.+)",$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    builder, user = (folder / name / "bin" / "python" for name in ("builder", "user"))
    for made in (builder, user):
        run(python, "-m", "venv", made.parents[1], cwd=folder)
    run(builder, "-m", "pip", "install", torch, cwd=folder)
    run(builder, "-m", "pip", "wheel", "--no-deps", "-C", f"build-dir={folder / 'build'}", ROOT, cwd=folder)
    (wheel,) = folder.glob("tt_torch-*.whl")
    run(user, "-m", "pip", "install", wheel, cwd=folder)
    (example,) = re.findall(r"<!-- run -->\n```python\n(.*?)```", README, re.DOTALL)
    where = "print(tt_torch.__file__)"
    # With an empty PATH there is no compiler.
    printed = run(user, "-c", f"{example}\n{where}", cwd=folder, PATH="")
    assert Path(printed.strip()).is_relative_to(user.parents[1])
