"""Finds a Python that has the `ttnn` package, and makes an environment with one for mock devices.

The package has wheels for some versions of Python only, and fixed versions of its own dependencies. So it gets an
environment of its own in the user's cache folder. On mock devices the package checks everything and computes nothing.
"""

from __future__ import annotations

import fcntl
import math
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from tt_torch.codegen import mock_cluster
from tt_torch.codegen.kernel_elf import minimal_kernel
from tt_torch.errors import EnvironmentMissingError
from tt_torch.files import write
from tt_torch.waiting import waiting

VERSION = "0.81.1"
PACKAGES = (f"ttnn=={VERSION}", "safetensors==0.8.0")
PYTHONS = ("3.12", "3.10")  # the versions that have wheels, the preferred one first
DEVICES = {name: card.arch for name, card in mock_cluster.CARDS.items()}  # mock devices and their architectures
READY = "ready"  # this file is written last: a folder without it comes from an interrupted setup


def default_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tt_torch" / f"ttnn-{VERSION}"


def python_in(folder: Path) -> Path:
    return folder / "venv" / "bin" / "python"


def is_ready(folder: Path | None = None) -> bool:
    return ((folder or default_folder()) / READY).exists()


def require(folder: Path | None = None) -> Path:
    """The folder of the environment. Raises EnvironmentMissingError if the environment is not complete."""
    folder = folder or default_folder()
    if not is_ready(folder):
        raise EnvironmentMissingError(f"the ttnn package is not set up in {folder}; run: tt-torch check --setup")
    return folder


def find_python() -> Path:
    """An interpreter of one of the versions PYTHONS: one of pyenv's, or one on the PATH.

    Raises EnvironmentMissingError if there is none.
    """
    if found := next(filter(None, map(interpreter, PYTHONS)), None):
        return found
    wanted = " or ".join(PYTHONS)
    raise EnvironmentMissingError(
        f"ttnn {VERSION} needs Python {wanted}, which is neither on the PATH nor among pyenv's versions; install one"
    )


def interpreter(version: str) -> Path | None:
    """An interpreter of a version of Python, such as "3.12": one of pyenv's, or one on the PATH."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = sorted(root.glob(f"{version}.*/bin/python{version}"), reverse=True)
    if on_path := shutil.which(f"python{version}"):
        candidates.append(Path(on_path))
    return next((python for python in candidates if _runs(python, version)), None)


def _runs(python: Path, version: str) -> bool:
    """True if the interpreter starts. pyenv's shims are on the PATH even for versions that are not installed."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    found = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return found.returncode == 0 and found.stdout.strip() == version


def set_up(folder: Path | None = None) -> Path:
    """Makes the environment if it is missing, and makes it anew if an earlier setup was interrupted."""
    folder = folder or default_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        if not is_ready(folder):
            with waiting(lambda: f"installing ttnn {VERSION}, which takes some minutes"):
                _install(folder)
            write(folder / READY, f"ttnn {VERSION}\n".encode())
    return folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(folder: Path) -> None:
    shutil.rmtree(folder / "venv", ignore_errors=True)
    _run([find_python(), "-m", "venv", folder / "venv"])
    _run([python_in(folder), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES])
    stub_compiler(folder / "venv")


def stub_compiler(venv: Path) -> None:
    """Puts a stub of the compiler of kernels into the `ttnn` package of an environment, which is enough for mock
    devices. The package has no compiler itself."""
    (package,) = venv.glob("lib/python3.*/site-packages/ttnn")
    compiler = package / "runtime" / "sfpi" / "compiler" / "bin" / "riscv-tt-elf-g++"
    write(compiler, files("tt_torch.codegen").joinpath("mock/riscv-tt-elf-g++").read_bytes())
    compiler.chmod(0o755)
    write(compiler.with_name("kernel.elf"), minimal_kernel())


def _run(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise EnvironmentMissingError(f"{' '.join(map(str, command))} failed: {reason[-1]}")


def variables(folder: Path, device: str, mesh_shape: Sequence[int] = (1, 1)) -> dict[str, str]:
    """Environment variables for a process that opens a mock device with (rows, columns) of chips.

    The process keeps its built kernels in the folder, where the descriptions of mock devices are, too.
    """
    beside = folder / "mock" / f"{device}_{'x'.join(map(str, mesh_shape))}"
    cluster = beside.with_suffix(".yaml")
    write(cluster, mock_cluster.description(device, mesh_shape).encode())
    found = {
        "TT_METAL_MOCK_CLUSTER_DESC_PATH": str(cluster),
        "TT_METAL_CACHE": str(folder / "kernels"),
        "TT_LOGGER_LEVEL": "fatal",
        "TT_METAL_LOGGER_LEVEL": "FATAL",
    }
    if math.prod(mesh_shape) > 1:
        graph = beside.with_suffix(".textproto")
        write(graph, mock_cluster.fabric(device, mesh_shape).encode())
        found["TT_MESH_GRAPH_DESC_PATH"] = str(graph)
    return dict(os.environ) | found
