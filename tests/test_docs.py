"""The documentation: links lead somewhere, snippets marked `<!-- run -->` run, bring_up.md leads to a model that works.

Whether docs/controlling.md is current is tested in test_config.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "third_party/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]

WHOLE = re.MULTILINE | re.DOTALL
LINK = re.compile(r"\]\(([^)\s]+)\)")
SNIPPET = re.compile(r"^<!-- run -->\n```python\n(.*?)^```$", WHOLE)
FILE = re.compile(r"^<!-- file (\S+) -->\n```python\n(.*?)^```$", WHOLE)
EDIT = re.compile(r"^<!-- edit (\S+) (after|before|replace) ([^\n]+) -->\n```(?:python|cpp)\n(.*?)^```$", WHOLE)

# Runs the snippets of all pages in one process. The snippets of one page are one program. The device is imported
# here; for a user, PyTorch loads it.
RUN = """
import sys, torch, tt_torch.device
for page in sys.argv[1:]:
    torch.manual_seed(0)
    exec(compile(open(page).read(), page, "exec"), {"__name__": page})
"""

# An editable install would find the package in the repository. The copy in the current folder has to come first.
TEST_COPY = """
import os, sys, pytest
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # otherwise torch imports the installed package before the copy
sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
sys.path.insert(0, "")
import tt_torch
assert tt_torch.__file__.startswith(sys.argv[1]), tt_torch.__file__
sys.exit(pytest.main(["-n0", "-q", "-k", *sys.argv[2:]]))
"""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [target.partition("#")[0] for target in LINK.findall(page.read_text()) if "://" not in target]
    missing = [target for target in targets if target and not (page.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_exist(page: Path) -> None:
    """Each path that a page writes out in full is a file or folder of the repository."""
    named = re.findall(r"`((?:tt_torch|tests|demos|examples|env)/[\w/.]+)`", page.read_text())
    made = {"env/venv", "env/setup.log"}
    assert [path for path in named if path not in made and not (ROOT / path).exists()] == []


def test_folders_of_the_picture_exist() -> None:
    folders = re.findall(r"([\w/]+)/<", (ROOT / "docs" / "flow.svg").read_text())
    assert folders and not [folder for folder in folders if not (ROOT / "tt_torch" / folder).is_dir()]


@pytest.mark.slow
def test_snippets_run(tmp_path: Path) -> None:
    programs = []
    for page in PAGES:
        if snippets := SNIPPET.findall(page.read_text()):
            programs.append(tmp_path / f"{page.stem}_page.py")  # transformers.py would hide the package
            programs[-1].write_text("\n".join(snippets))
    assert len(programs) >= 2
    done = run("-c", RUN, *map(str, programs), folder=tmp_path)
    assert "2 input <TensorSpec 4x64 Float32 row_major dram>" in done.stdout
    assert "aten._linalg_eigh.default is not supported" in done.stdout
    assert "no bucket of" not in done.stderr


@pytest.mark.slow
def test_bring_up_as_written(tmp_path: Path) -> None:
    """The page's program has one op that fails. With the page's edit, in a copy of the package, no op fails. The row
    that the page adds last passes."""
    copy_package(tmp_path)
    page = (ROOT / "docs" / "bring_up.md").read_text()
    ((name, text),) = FILE.findall(page)
    (tmp_path / name).write_text(text)
    decomposition, row = EDIT.findall(page)
    op_by_op = {"TT_TORCH_COMPILE_DEPTH": "EXECUTE_OP_BY_OP", "TT_TORCH_JOBS": "1"}
    before = run_copy(tmp_path, [name], op_by_op)
    example, _, _ = page.partition("\n## Op by op")
    said = [line.split(" in stage")[0] for line in re.findall(r"^ {4}(\[.*)$", example, re.MULTILINE)]
    assert said and all(line in before.stderr for line in said), before.stderr
    assert "HostFallbackWarning" in run_copy(tmp_path, [name], {}).stderr
    edit(tmp_path / decomposition[0], *decomposition[1:])
    run_copy(tmp_path, [name], op_by_op | {"TT_TORCH_CHECK_ALL_OPS_EXECUTE": "1"})
    compared = run_copy(tmp_path, ["-m", "tt_torch.tools.cli", "verify", name], {"TT_TORCH_FALLBACK": "error"})
    assert "all agree" in compared.stderr
    edit(tmp_path / row[0], *row[1:])
    tested = run("-c", TEST_COPY, str(tmp_path), "matrix_exp", "tests/test_ops.py", folder=tmp_path)
    assert re.search(r"^\d+ passed, \d+ deselected", tested.stdout, re.MULTILINE), tested.stdout


def run_copy(folder: Path, arguments: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess:
    """Runs Python on the copy of the package in `folder`, worker processes included.

    The option -S leaves out the editable install.
    """
    path = os.pathsep.join([str(folder), *(p for p in sys.path if p.endswith("site-packages"))])
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TT_TORCH_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, "-S", *arguments],
        cwd=folder,
        env=environment | variables | {"PYTHONPATH": path, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def copy_package(folder: Path) -> None:
    from tt_torch.runtime import _runtime
    from tt_torch.wire import _encoder

    for part in ("tt_torch", "tests"):  # Python's compiled files are copied, too, which saves seconds
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("data"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for module in (_runtime, _encoder):
        for library in Path(module.__file__).parent.glob("*.so"):
            target = folder / "tt_torch" / library.parent.name / library.name
            target.unlink(missing_ok=True)
            target.symlink_to(library)


def edit(file: Path, how: str, anchor: str, text: str) -> None:
    """Inserts `text` after or before the one line that contains the anchor, or puts it in the anchor's place."""
    content = file.read_text()
    if how == "replace":
        assert content.count(anchor) == 1, f"{file.name} must contain this once: {anchor}"
        file.write_text(content.replace(anchor, text.strip()))
        return
    lines = content.splitlines(keepends=True)
    (at,) = (i for i, line in enumerate(lines) if anchor in line)
    lines.insert(at + (how == "after"), text)
    file.write_text("".join(lines))


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess:
    done = call(*arguments, folder=folder)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def call(*arguments: str, folder: Path) -> subprocess.CompletedProcess:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TT_TORCH_", "PYTEST_"))}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment | {"OMP_NUM_THREADS": "1", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
