"""Builds everything outside of this environment: the package as a user installs it, the C++ libraries as archives.

This takes minutes. CI runs it by `pytest -m build -n 0`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pybind11
import pytest
import torch

ROOT = Path(__file__).parents[2]
CMAKE = [sys.executable, "-m", "cmake"]
pytestmark = pytest.mark.build

USE = """
import torch
x = torch.arange(4.0, device="tt")
assert (x * x).sum().item() == 14
run = torch.compile(lambda x: x * 2, backend="tt")
assert run(x).cpu().tolist() == [0, 2, 4, 6]
"""


def run(*command: object, check: bool = True, **options: object) -> subprocess.CompletedProcess:
    # The tools of this environment are found even if it is not active.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, env={**os.environ, "PATH": path}, **options
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of a new environment that has the packages of this one, but not ours."""
    folder = tmp_path / "venv"
    venv.create(folder)
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    shared = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "shared.pth").write_text("\n".join(path for path in shared if not (Path(path) / "tt_torch").exists()))
    for path in shared:  # links to the other packages in the folder that has ours
        for entry in Path(path).iterdir() if (Path(path) / "tt_torch").exists() else ():
            if "tt_torch" not in entry.name and not (packages / entry.name).exists():
                (packages / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def test_install_and_uninstall(python: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--python", python]
    options = ["--no-build-isolation", "--no-deps", "-C", f"build-dir={tmp_path / 'build'}"]
    for _ in range(2):  # the second time, the same build folder is used
        run(*pip, "install", *options, "--editable", ROOT)
        run(python, "-c", USE, cwd=tmp_path)
        run(*pip, "uninstall", "--yes", "tt-torch")
        done = run(python, "-c", "import torch, tt_torch.device", cwd=tmp_path, check=False)
        assert "No module named 'tt_torch" in done.stderr
        # pip leaves empty folders.
        assert not [path for path in python.parents[1].glob("lib/*/site-packages/*tt_torch*/**/*") if path.is_file()]
        assert not list(python.parents[1].glob("lib/*/site-packages/*tt_torch*.p*"))


def test_debug_build_of_archives(tmp_path: Path) -> None:
    build, installed = tmp_path / "build", tmp_path / "installed"
    options = {
        "CMAKE_BUILD_TYPE": "Debug", "BUILD_SHARED_LIBS": "OFF", "CMAKE_INSTALL_PREFIX": installed,
        "Python_EXECUTABLE": sys.executable, "pybind11_DIR": pybind11.get_cmake_dir(),
    }  # fmt: skip
    run(*CMAKE, "-G", "Ninja", "-S", ROOT, "-B", build, *(f"-D{name}={value}" for name, value in options.items()))
    run(*CMAKE, "--build", build)
    run(*CMAKE, "--install", build)
    assert not list(installed.rglob("*.so"))
    places = {
        "Torch_DIR": f"{torch.utils.cmake_prefix_path}/Torch",
        "tt_device_DIR": f"{installed}/tt_torch/device/cmake",
    }
    example = tmp_path / "example"
    run(*CMAKE, "-S", ROOT / "examples" / "cpp_torch", "-B", example, *(f"-D{k}={v}" for k, v in places.items()))
    run(*CMAKE, "--build", example)
    assert "0 fallbacks" in run(example / "eager_tt").stdout
