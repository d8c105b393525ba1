"""An environment and a build folder that the tests of installations share, because a build takes minutes."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that has the packages of this one, but not ours."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(folder)
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    shared = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "shared.pth").write_text("\n".join(path for path in shared if not (Path(path) / "tt_torch").exists()))
    for path in shared:  # links to the other packages in the folder that has ours
        for entry in Path(path).iterdir() if (Path(path) / "tt_torch").exists() else ():
            if "tt_torch" not in entry.name and not (packages / entry.name).exists():
                (packages / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


@pytest.fixture(scope="session")
def release_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the package is built for this interpreter, for an editable installation and for a wheel."""
    return tmp_path_factory.mktemp("release") / "build"
