"""A stand-in for a PJRT plugin, and a machine on which no other tt-mlir is found."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tt_torch.tt_mlir import finding

BINARY = Path(__file__).parents[1] / "data" / "wire" / "linear_relu.ttnn"  # made by tt-mlir


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr(finding, "PACKAGES", ())
    for variable in ("TT_TORCH_PJRT_PLUGIN", "TTMLIR_HOME"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The library of stand_in.c."""
    library = tmp_path_factory.mktemp("plugin") / "libtt.so"
    source = Path(__file__).with_name("stand_in.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, source], check=True)
    return library


@pytest.fixture
def stand_in(built, nothing_installed, monkeypatch):
    monkeypatch.setenv("STAND_IN_BINARY", str(BINARY))
    return built
