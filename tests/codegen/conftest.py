"""Fixtures of tests on Tenstorrent's own library, which `tt-torch check --setup` installs. Without it, they skip."""

from __future__ import annotations

import sys

import pytest
import torch
from ttnn_devices import STAND_IN, network

import tt_torch
from tt_torch.codegen import device as ttnn_device
from tt_torch.codegen import environment
from tt_torch.codegen.check import Checker
from tt_torch.codegen.device import TtnnDevice
from tt_torch.runtime import result_forms


@pytest.fixture(scope="session")
def ttnn_folder():
    """The folder of Tenstorrent's library. Tests that need it skip where it is not installed."""
    if not environment.is_ready():
        pytest.skip(f"no ttnn package in {environment.default_folder()}: tt-torch check --setup makes it")
    return environment.default_folder()


@pytest.fixture(scope="session")
def checkers(ttnn_folder):
    """A function that returns the checker of a mock device. The device stays open for all tests of this process."""
    opened: dict[tuple[str, tuple[int, int]], Checker] = {}

    def get(device: str = "n150", mesh: tuple[int, int] = (1, 1)) -> Checker:
        if (device, mesh) not in opened:
            opened[device, mesh] = Checker(device, mesh_shape=mesh)
        return opened[device, mesh]

    yield get
    for checker in opened.values():
        checker.close()


@pytest.fixture(scope="session")
def dispatched():
    """A function that runs a binary with zeros on a mock device, which stays open for all tests of this process.

    The checkers only record ops. Here ops are dispatched as with device="ttnn", and tensors take memory.
    """
    opened: dict[str, TtnnDevice] = {}

    def run(binary: bytes, device: str) -> list[torch.Tensor]:
        described = environment.variables(environment.default_folder(), device)[ttnn_device.MOCK]
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv(ttnn_device.MOCK, described)
            if device not in opened:
                opened[device] = TtnnDevice(environment.DEVICES[device])
            program = opened[device].load(binary)
            return program([torch.zeros(shape, dtype=dtype) for shape, dtype in result_forms(program.inputs)])

    yield run
    for device in opened.values():
        device.close()


@pytest.fixture(scope="module")
def compiled():
    """The binary of a model, arguments of its program, and the model's result for them."""
    model, x = network(), torch.randn(3, 16)
    made = tt_torch.compile_model(model, (x,))
    return made.binary, made.arguments(x), model(x).detach()


@pytest.fixture
def importable(monkeypatch):
    """Lets this process import the stand-in for the package."""
    monkeypatch.syspath_prepend(STAND_IN)
    yield
    for name in [n for n in sys.modules if n == "ttnn" or n.startswith("tt_torch.codegen.ttnn_worker.")]:
        del sys.modules[name]
