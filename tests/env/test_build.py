"""Builds everything outside of this environment: the package as users install it, and the C++ libraries as archives.

This takes minutes, so it runs every night. `pytest -m build -n 2` runs it by hand.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import torch
from scikit_build_core.settings.skbuild_read_settings import SettingsReader

ROOT = Path(__file__).parents[2]
CMAKE = [sys.executable, "-m", "cmake"]
pytestmark = [pytest.mark.build, pytest.mark.nightly]

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


def test_install_and_uninstall(python: Path, release_build: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--python", python]
    options = ["--no-deps", "-C", f"build-dir={release_build}", "--editable", "."]
    uv = [sys.executable, "-m", "uv", "pip", "install", "--python", python, "--offline"]
    for install in [*pip, "install", "--no-build-isolation"], uv:  # both use the same build folder
        run(*install, *options, cwd=ROOT)
        run(python, "-c", USE, cwd=tmp_path)
        run(*pip, "uninstall", "--yes", "tt-torch")
        done = run(python, "-c", "import torch, tt_torch.device", cwd=tmp_path, check=False)
        assert "No module named 'tt_torch" in done.stderr
        # pip leaves empty folders.
        assert not [path for path in python.parents[1].glob("lib/*/site-packages/*tt_torch*/**/*") if path.is_file()]
        assert not list(python.parents[1].glob("lib/*/site-packages/*tt_torch*.p*"))


def test_the_build_type_of_the_package() -> None:
    def build_type(options: dict[str, str] | None = None, **env: str) -> str:
        return SettingsReader.from_file(ROOT / "pyproject.toml", options, env=env).settings.cmake.build_type

    assert build_type() == "Release"
    for name in ("Debug", "RelWithDebInfo", "MinSizeRel", "Release"):
        assert build_type(CMAKE_ARGS=f"-GNinja -DCMAKE_BUILD_TYPE={name} -DOTHER=1") == name
        assert build_type(CMAKE_ARGS=f"-D CMAKE_BUILD_TYPE:STRING={name}") == name
    conda = "-DCMAKE_AR=ar -DCMAKE_BUILD_TYPE=Release"  # conda's compilers set this
    assert build_type(CMAKE_ARGS=conda, CMAKE_BUILD_TYPE="Debug") == "Debug"
    assert build_type({"cmake.build-type": "Debug"}, CMAKE_ARGS=conda) == "Debug"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """An interpreter that has no packages."""
    venv.create(tmp_path / "bare")
    return tmp_path / "bare" / "bin" / "python"


def configure(build: Path, check: bool = True, **options: object) -> str:
    """Configures the project and returns what CMake writes. Lines are joined, since CMake breaks them anywhere."""
    given = [f"-D{name}={value}" for name, value in options.items()]
    done = run(*CMAKE, "-G", "Ninja", "-S", ROOT, "-B", build, *given, check=check)
    assert check or done.returncode
    return " ".join((done.stdout + done.stderr).split())


def test_debug_build_of_archives(bare: Path, tmp_path: Path) -> None:
    """The C++ libraries need neither pybind11 nor the torch of an interpreter.

    The option -g1 gives debuggers only functions and lines. With the types of all of PyTorch, the build would spend two
    fifths of its time on them.
    """
    build, installed = tmp_path / "build", tmp_path / "installed"
    configure(
        build, CMAKE_BUILD_TYPE="Debug", BUILD_SHARED_LIBS="OFF", CMAKE_INSTALL_PREFIX=installed,
        CMAKE_CXX_FLAGS_DEBUG="-g1", Python_EXECUTABLE=bare, CMAKE_PREFIX_PATH=torch.utils.cmake_prefix_path,
    )  # fmt: skip
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


def test_the_torch_that_a_build_uses(python: Path, bare: Path, tmp_path: Path) -> None:
    own = Path(torch.__file__).resolve().parent
    # CMAKE_PREFIX_PATH may be the folder of an unpacked libtorch. The installed libraries then look for torch there.
    configure(tmp_path / "named", Python_EXECUTABLE=bare, CMAKE_PREFIX_PATH=own)
    assert f"{own}/lib" in (tmp_path / "named/tt_torch/runtime/cmake_install.cmake").read_text()
    errors = configure(tmp_path / "none", check=False, Python_EXECUTABLE=bare)
    assert "There is no torch in" in errors and "-DCMAKE_PREFIX_PATH=<libtorch>" in errors

    other = tmp_path / "libtorch"
    for file, text in {
        "lib/libtorch_cpu.so": "",
        "share/cmake/Torch/TorchConfig.cmake": "",
        "include/torch/headeronly/version.h": '  "2.12.1"\n',
    }.items():
        (other / file).parent.mkdir(parents=True)
        (other / file).write_text(text)
    errors = configure(tmp_path / "old", check=False, Python_EXECUTABLE=bare, CMAKE_PREFIX_PATH=other)
    assert f"written for torch {torch.__version__.partition('+')[0]}, but {other} has torch 2.12.1" in errors
    package = {"SKBUILD": "ON", "Python_EXECUTABLE": python}
    errors = configure(tmp_path / "package", check=False, CMAKE_PREFIX_PATH=other, **package)
    assert f"CMAKE_PREFIX_PATH names {other}/lib/libtorch_cpu.so, but the Python package runs with" in errors
