"""The installed libraries find each other wherever they are put, and carry nothing of the machine that built them."""

import re
from pathlib import Path

import pytest

from tt_torch.runtime import _runtime

FOLDER = Path(_runtime.__file__).parent
LIBRARIES = [Path(_runtime.__file__), FOLDER / "libtt_runtime.so"]
RPATHS = {LIBRARIES[0]: b"$ORIGIN", LIBRARIES[1]: b"$ORIGIN/../../torch/lib"}


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)
def test_rpath(library):
    data = library.read_bytes()
    assert b"\0" + RPATHS[library] + b"\0" in data
    # Strings of the dynamic section and of checks in headers: no absolute path of sources, builds or packages.
    assert not re.findall(rb"/\w[\x21-\x7e]*/(?:site-packages|tt_torch|build)/", data)


def test_headers_and_cmake_files_are_beside_the_libraries():
    headers = {path.name for path in (FOLDER / "include" / "tt" / "runtime").glob("*.h")}
    assert {"runtime.h", "binary.h", "device.h", "executable.h", "tensor.h", "error.h"} <= headers
    targets = "".join(path.read_text() for path in (FOLDER / "cmake").glob("tt_runtimeTargets*.cmake"))
    assert "${_IMPORT_PREFIX}/tt_torch/runtime/libtt_runtime.so" in targets
    assert str(FOLDER) not in targets
