"""An environment and a build folder that the tests of installations share, because a build takes minutes."""

from __future__ import annotations

import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that has the packages of this one, but not ours."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(folder)
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    shared = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "shared.pth").write_text("\n".join(path for path in shared if not (Path(path) / "tt_torch").exists()))
    for path in shared:  # if a folder has our package, its other packages are linked
        for entry in Path(path).iterdir() if (Path(path) / "tt_torch").exists() else ():
            if "tt_torch" not in entry.name and not (packages / entry.name).exists():
                (packages / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


@contextmanager
def build_folder() -> Iterator[Path]:
    """An empty folder beside the folder of the installed build.

    ccache finds the objects of another build if both folders are equally deep in the checkout. So these builds compile
    nothing again.
    """
    (ROOT / "build").mkdir(exist_ok=True)
    with TemporaryDirectory(dir=ROOT / "build") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def release_build() -> Iterator[Path]:
    """The folder in which the package is built for this interpreter, for an editable installation and for a wheel."""
    with build_folder() as folder:
        yield folder


@pytest.fixture
def other_build() -> Iterator[Path]:
    """The folder in which the package is built for another interpreter."""
    with build_folder() as folder:
        yield folder
