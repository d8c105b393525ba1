"""The wheel as users install it, in an environment without extras and without a compiler.

README's example runs there, commands name the extra that they need, and a type checker knows the public names.

This takes minutes. CI runs it by `pytest -m build -n 2`.
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

from tt_torch.codegen.environment import PACKAGES, PYTHONS, interpreter, stub_compiler, variables

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
pytestmark = pytest.mark.build

# Variables by which the program could find a checkout, an environment or a compiler. The tests remove them.
HIDDEN = ("TT_TORCH_HOME", "PYTHONPATH", "VIRTUAL_ENV", "CXX", "CC")

# A user's program for mypy. Each comment is the type that mypy must find.
TYPED = """
import torch
import tt_torch

model, x = torch.nn.Linear(4, 2).eval(), torch.randn(1, 4)
config = tt_torch.CompilerConfig(dtype="bf16")
fast = torch.compile(model, backend=tt_torch.backend)
reveal_type(tt_torch.compile_model(model, (x,), config))  # tt_torch.driver.compiled.CompiledModel
reveal_type(tt_torch.explain(model, x))  # tt_torch.driver.explain.Explanation
reveal_type(tt_torch.CompileDepth.TTNN_IR)  # Literal[tt_torch.compiler_options.CompileDepth.TTNN_IR]?
reveal_type(tt_torch.__version__)  # str
tt_torch.no_such_name  # type: ignore[attr-defined]
"""

# Runs on Tenstorrent's library. A process imports the library itself if it has no worker. A mock device gives zeros.
ON_LIBRARY = """
import sys
import torch
import tt_torch

model, x = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).eval(), torch.randn(32, 64)
compiled = tt_torch.compile_model(model, (x,), tt_torch.CompilerConfig(device="ttnn", dtype="bf16"))
print("ttnn" in sys.modules, tuple(compiled(x).shape), compiled(x).abs().max().item())
"""

# The other Pythons that the package is for. CI tries the one that Tenstorrent's library also has a wheel for.
OTHERS = ("3.12", *(pytest.param(version, marks=pytest.mark.nightly) for version in ("3.10", "3.13")))
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


def test_a_wheel_of_this_python(python: Path, release_build: Path, folder: Path) -> None:
    """This environment has the tools of the build. The wheel is installed into an empty environment."""
    pip = [sys.executable, "-m", "pip", "--python", python]
    options = ["--no-deps", "--no-build-isolation", "-C", f"build-dir={release_build}"]
    # The tools of the build are on the PATH of an active environment.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    run(*pip, "wheel", *options, ROOT, cwd=folder, PATH=path)
    user = made(Path(sys.executable), folder)
    runs_in_an_empty_environment(user, folder)


@pytest.mark.parametrize("version", OTHERS)
def test_a_wheel_of_another_python(version: str, other_build: Path, folder: Path) -> None:
    python = interpreter(version)
    if python is None or not has_header(python):
        pytest.skip(f"this machine has no Python {version} with its headers")
    user = made(python, folder)
    # Here pip itself installs the tools of the build. The pip of Python 3.10 does not know the short name -C.
    options = ["--no-deps", "--config-settings", f"build-dir={other_build}"]
    run(user, "-m", "pip", "wheel", *options, ROOT, cwd=folder)
    runs_in_an_empty_environment(user, folder)
    if version in PYTHONS:
        runs_on_the_library_without_a_worker(user, folder)


def made(python: Path, folder: Path) -> Path:
    """The interpreter of a new environment that has only torch and the packages that torch needs.

    For another Python, these packages have gigabytes, and uv installs them in a third of pip's time. Modules are not
    compiled at once, because most of them are never imported.
    """
    user = folder / "user" / "bin" / "python"
    (torch,) = re.findall(r'^  "(torch==.+)",$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    run(python, "-m", "venv", user.parents[1], cwd=folder)
    own = [user, "-m", "pip", "install", "--no-compile"]
    other = [sys.executable, "-m", "uv", "pip", "install", "--no-cache", "--python", user]
    run(*(own if python == Path(sys.executable) else other), torch, cwd=folder)
    return user


def runs_in_an_empty_environment(user: Path, folder: Path) -> None:
    (wheel,) = folder.glob("tt_torch-*.whl")
    run(user, "-m", "pip", "install", wheel, cwd=folder)
    (example,) = re.findall(r"<!-- run -->\n```python\n(.*?)```", README, re.DOTALL)
    where = "print(tt_torch.__file__, tt_torch.__version__)"
    # With an empty PATH there is no compiler.
    file, version = run(user, "-c", f"{example}\n{where}", cwd=folder, PATH="").split()
    assert Path(file).is_relative_to(user.parents[1]) and wheel.name.startswith(f"tt_torch-{version}-")
    command = [user, "-m", "tt_torch.tools.cli", "sweep", "ops"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1) and "pip install 'tt-torch[sweeps]'" in done.stderr
    assert types(user, folder) == re.findall(r"reveal_type\(.*  # (.*)", TYPED)


def runs_on_the_library_without_a_worker(user: Path, folder: Path) -> None:
    """pip accepts `ttnn` beside this package, and `device="ttnn"` uses it in the same process."""
    (wheel,) = folder.glob("tt_torch-*.whl")
    install = [sys.executable, "-m", "uv", "pip", "install", "--no-cache", "--python", user]
    run(*install, wheel, *PACKAGES, cwd=folder)
    stub_compiler(user.parents[1])
    printed = run(user, "-c", ON_LIBRARY, cwd=folder, **variables(folder / "mock", "n150"))
    assert printed.splitlines()[-1] == "True (32, 64) 0.0"


def types(python: Path, folder: Path) -> list[str]:
    """The types that mypy finds in TYPED with the packages of an interpreter."""
    (folder / "program.py").write_text(TYPED)
    options = ["--strict", "--python-executable", python, "--cache-dir", folder / "cache", "program.py"]
    printed = run(sys.executable, "-m", "mypy", *options, cwd=folder)
    return re.findall(r'Revealed type is "(.*)"', printed)
