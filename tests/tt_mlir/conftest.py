"""A stand-in for a PJRT plugin, and a machine on which no other tt-mlir is found."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tt_torch.tt_mlir import finding
from tt_torch.wire.binary import header, system_desc
from tt_torch.wire.encode import encode

BINARY = Path(__file__).parents[1] / "data" / "wire" / "linear_relu.ttnn"  # made by tt-mlir


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr(finding, "PACKAGES", ())
    for variable in ("TT_TORCH_PJRT_PLUGIN", "TTMLIR_HOME"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The path of the library that is built from stand_in.c."""
    library = tmp_path_factory.mktemp("plugin") / "libtt.so"
    source = Path(__file__).with_name("stand_in.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, source], check=True)
    return library


@pytest.fixture
def stand_in(built, nothing_installed, monkeypatch):
    monkeypatch.setenv("STAND_IN_BINARY", str(BINARY))
    return built


def system_of(chips: int, folder: Path) -> Path:
    """A `.ttsys` file of a system of several Wormhole chips."""
    path = folder / f"{chips}.ttsys"
    path.write_bytes(encode(header("92f6a8a8") | {"system_desc": system_desc("wormhole_b0", chips)}))
    return path
