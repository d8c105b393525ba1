"""The installed libraries find each other in any folder, and contain no path of the machine that built them."""

import re
import subprocess
from pathlib import Path

import pytest

from tt_torch.device import _device
from tt_torch.runtime import _runtime

FOLDER, DEVICE = Path(_runtime.__file__).parent, Path(_device.__file__).parent
RPATHS = {
    Path(_runtime.__file__): b"$ORIGIN",
    FOLDER / "libtt_runtime.so": b"$ORIGIN/../../torch/lib",
    Path(_device.__file__): b"$ORIGIN",
    DEVICE / "libtt_device.so": b"$ORIGIN/../runtime:$ORIGIN/../../torch/lib",
}
each_library = pytest.mark.parametrize("library", RPATHS, ids=lambda path: path.name)


@each_library
def test_nothing_is_unresolved(library):
    done = subprocess.run(["ldd", "-r", library], capture_output=True, text=True, check=True)
    missing = re.findall(r".*not found.*|undefined symbol: \S+", done.stdout + done.stderr)
    # A Python module gets the interpreter's symbols from the process that loads it.
    assert not [line for line in missing if not re.match(r"undefined symbol: _?Py", line)]


@each_library
def test_rpath(library):
    data = library.read_bytes()
    assert b"\0" + RPATHS[library] + b"\0" in data
    # The strings of the dynamic section and the strings of checks in headers have no absolute path.
    assert not re.findall(rb"/\w[\x21-\x7e]*/(?:site-packages|tt_torch|build)/", data)


def test_headers_and_cmake_files_are_beside_the_libraries():
    headers = {path.name for path in (FOLDER / "include" / "tt" / "runtime").glob("*.h")}
    assert {"runtime.h", "binary.h", "device.h", "executable.h", "tensor.h", "error.h"} <= headers
    targets = "".join(path.read_text() for path in (FOLDER / "cmake").glob("tt_runtimeTargets*.cmake"))
    assert "${_IMPORT_PREFIX}/tt_torch/runtime/libtt_runtime.so" in targets
    assert str(FOLDER) not in targets
