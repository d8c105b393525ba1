"""docs/add_an_op.md: each of its ops is taken out of a copy of the package, and put back as the page says.

The search finds no trace of the op between the two, so the page names all of its places.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pybind11
import pytest
import torch
from test_docs import EDIT, ROOT, TEST_COPY, call, copy_package, edit, run

PAGE = (ROOT / "docs" / "add_an_op.md").read_text()
OP = re.compile(r"^<!-- op (\w+) in (\d+) files, in any spelling: (.+) -->$", re.MULTILINE)
ERROR = re.compile(r"^    (aten\.\S+ is not supported in stage [\w-]+)$", re.MULTILINE)
TESTS = re.compile(r'^    source env/activate && pytest (.+) -k "?([^"\n]+)"?$', re.MULTILINE)
TEXT = {".cpp", ".h", ".json", ".md", ".mlir", ".py", ".toml", ".txt"}
# The page excludes these from the search: tables that come from tt-mlir, test data, names of ops in StableHLO and ONNX,
# functions of complex numbers, the list of ops that eager PyTorch runs, and functions that are part of other ops in the
# binaries of other compilers.
ELSEWHERE = (
    *("tt_torch/wire/schemas/", "tests/data/", "tests/mlir/edge_rows.py", "tests/mlir/spec_programs.py"),
    *(
        "tt_torch/mlir/onnx_",
        "tests/test_onnx_",
        "tt_torch/dynamo/complex_pairs/",
        "tests/dynamo/test_complex_rules.py",
    ),
    *("tt_torch/mlir/stablehlo/by_pytorch.py", "tests/mlir/test_complex_stablehlo.py", "tests/op_table_complex.py"),
    "tt_torch/device/src/ops.h",
    *("tt_torch/runtime/src/kernels/activations.cpp", "tests/runtime/test_plugin_binaries.py"),
)
# A call of PyTorch's function, in other ops and in tests.
USE = r"(?<!composites)\.{name}_?\("

PROGRAM = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
sys.path.insert(0, "")
import torch, tt_torch
from tt_torch.runtime import _runtime
assert _runtime.__file__.startswith(sys.argv[1]), _runtime.__file__
x = torch.tensor([[0.5, 2.0, -3.0]])
torch.testing.assert_close(torch.compile(lambda x: x.{0}, backend=tt_torch.backend)(x), x.{0})
"""


@dataclass(frozen=True)
class Section:
    """The page's facts about one op: the number of files, a pattern of its names, the error without it, the edits, and
    its tests as files and an expression that selects them."""

    name: str
    files: int
    names: re.Pattern[str]
    error: str
    edits: list[tuple[str, str, str, str]]
    tests: tuple[str, str]


def sections() -> list[Section]:
    found = []
    for part in re.split(r"^(?=<!-- op )", PAGE, flags=re.MULTILINE)[1:]:
        ((name, files, names),), (error,), (tests,) = (form.findall(part) for form in (OP, ERROR, TESTS))
        found.append(Section(name, int(files), re.compile(names, re.IGNORECASE), error, EDIT.findall(part), tests))
    return found


SECTIONS = sections()


def take_out(file: Path, how: str, anchor: str, text: str) -> None:
    """Undoes `edit`: removes the text, or puts the anchor back in its place."""
    content = file.read_text()
    taken, left = (text.strip(), anchor) if how == "replace" else (text, "")
    assert content.count(taken) == 1, f"{file.name} has {content.count(taken)} times {taken}"
    file.write_text(content.replace(taken, left))


def traces(section: Section, *folders: Path) -> list[str]:
    """The lines of the folders that name the op, except those that only call the function."""
    use = re.compile(USE.format(name=section.name))
    lines = []
    for folder in folders:
        for file in (f for f in sorted(folder.rglob("*")) if f.suffix in TEXT and f.is_file()):
            path = str(file.relative_to(folder.parent))
            if not path.startswith(ELSEWHERE):
                text = file.read_text()
                lines += [f"{path}: {line}" for line in text.splitlines() if section.names.search(use.sub("", line))]
    return lines


def take_all_out(folder: Path) -> None:
    """Copies the package, the page's test apart, and takes all ops of the page out of the copy."""
    copy_package(folder)
    (folder / "tests" / Path(__file__).name).unlink()
    for file, *how in (found for section in SECTIONS for found in section.edits):
        take_out(folder / file, *how)


def test_the_ops_are_of_three_kinds() -> None:
    assert [(s.name, s.files) for s in SECTIONS] == [("tan", 3), ("cumprod", 6), ("spherical_bessel_j0", 2)]


def test_only_the_files_of_the_page_name_the_ops(tmp_path: Path) -> None:
    take_all_out(tmp_path)
    others = [ROOT / name for name in ("benchmarks", "demos", "examples")]
    for section in SECTIONS:
        assert len({file for file, *_ in section.edits}) == section.files
        assert traces(section, tmp_path / "tt_torch", tmp_path / "tests", *others) == []


@pytest.mark.slow
def test_add_the_ops_as_written(tmp_path: Path) -> None:
    """Tests and edits of all sections run together, because starting PyTorch for each would take most of the time."""
    take_all_out(tmp_path)
    for file, *how in (section.edits[-1] for section in SECTIONS):
        edit(tmp_path / file, *how)
    files = {file for section in SECTIONS for file in section.tests[0].split()}
    tests = ["-c", TEST_COPY, str(tmp_path), " or ".join(f"({section.tests[1]})" for section in SECTIONS), *files]
    failed = call(*tests, folder=tmp_path).stdout
    assert [section.name for section in SECTIONS if section.error not in failed] == []
    for file, *how in (found for section in SECTIONS for found in section.edits[:-1]):
        edit(tmp_path / file, *how)
    run(*tests, folder=tmp_path)


@pytest.mark.build
@pytest.mark.nightly
def test_add_the_kernels_as_written(tmp_path: Path) -> None:
    """Without the page's edits, the C++ library has neither kernel. With them, it has both."""
    copy_package(tmp_path)
    shutil.copy(ROOT / "CMakeLists.txt", tmp_path)
    kernels = [e for section in SECTIONS for e in section.edits if e[0].endswith(".cpp")]
    for file, *how in kernels:
        take_out(tmp_path / file, *how)
    build(tmp_path)
    for program, message in ("tan()", "Tan"), ("cumprod(1)", "the runtime has no kernel for: CumProdOp"):
        done = call("-c", PROGRAM.format(program), str(tmp_path), folder=tmp_path)
        assert done.returncode and message in done.stderr, done.stderr[-3000:]
    for file, *how in kernels:
        edit(tmp_path / file, *how)
    build(tmp_path)
    for program in ("tan()", "cumprod(1)"):
        run("-c", PROGRAM.format(program), str(tmp_path), folder=tmp_path)


def build(folder: Path) -> None:
    """Builds the runtime of a copy. The copy then has links to these libraries instead of the installed ones."""
    cmake, path = [sys.executable, "-m", "cmake"], f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    places = {"pybind11_DIR": pybind11.get_cmake_dir(), "TORCH_DIRECTORY": Path(torch.__file__).parent, "SKBUILD": "ON"}
    options = [f"-D{name}={value}" for name, value in {**places, "Python_EXECUTABLE": sys.executable}.items()]
    made = folder / "build" / "copy"  # as deep as the installed build, so that ccache finds the objects of this one
    for step in ["-G", "Ninja", "-S", folder, "-B", made, *options], ["--build", made, "--target", "_runtime"]:
        done = subprocess.run(
            [*cmake, *step], capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    for library in (made / "tt_torch" / "runtime").glob("*.so"):
        target = folder / "tt_torch" / "runtime" / library.name
        target.unlink(missing_ok=True)
        target.symlink_to(library)
