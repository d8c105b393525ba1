"""device="ttnn" on mock devices of the real package: it takes the programs, and gets the expected commands."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn
from ttnn_devices import asked, on

import tt_torch
from tt_torch.codegen import device as ttnn_device
from tt_torch.codegen import environment, write_program
from tt_torch.codegen.device import TtnnDevice
from tt_torch.config import CompilerConfig
from tt_torch.errors import WorkerError

pytestmark = pytest.mark.needs_ttnn

# A cluster descriptor with two chips. The same row of cores is switched off in both.
TWO_CHIPS = """
arch: {0: wormhole_b0, 1: wormhole_b0}
chips: {0: [0, 0, 0, 0], 1: [1, 0, 0, 0]}
chip_unique_ids: {0: 1, 1: 2}
ethernet_connections: [[{chip: 0, chan: 8}, {chip: 1, chan: 0}], [{chip: 0, chan: 9}, {chip: 1, chan: 1}]]
ethernet_connections_to_remote_devices: []
chips_with_mmio: [0: 0]
harvesting:
  0: &cores {noc_translation: true, harvest_mask: 32, dram_harvesting_mask: 0, eth_harvesting_mask: 0,
             pcie_harvesting_mask: 0, l2cpu_harvesting_mask: 0}
  1: *cores
boards: [[board_id: 72058994491072686, board_type: n300, chips: [0, 1]]]
"""


@pytest.fixture
def mock(ttnn_folder, monkeypatch, tmp_path):
    """A function that opens mock devices of the real package, of the kind that the environment variable describes."""
    opened = []

    def make(cluster: str = "n150", **options) -> TtnnDevice:
        described = environment.variables(ttnn_folder, "n150")[ttnn_device.MOCK]
        if cluster == "two chips":
            (tmp_path / "two_chips.yaml").write_text(TWO_CHIPS)
            described = str(tmp_path / "two_chips.yaml")
        monkeypatch.setenv(ttnn_device.MOCK, described)
        opened.append(TtnnDevice(**options))
        return opened[-1]

    yield make
    for device in opened:
        device.close()


@pytest.mark.filterwarnings("ignore:.*mock device")
def test_the_package_takes_a_whole_program(mock):
    filters = nn.Conv2d(2048, 2048, 1, bias=False)  # two copies of 8 GB if 1x1 filters were stored in tiles
    layers = [nn.Conv2d(3, 2048, 3), nn.ReLU(), nn.MaxPool2d(2), filters, nn.BatchNorm2d(2048)]
    network = nn.Sequential(*layers).bfloat16().eval()

    def model(x):
        y = network(x)
        return y, y.mean((2, 3)) > 0, y.flatten(1).argmax(1)

    device, inputs = mock(), [torch.randn(2, 3, 6, 6, dtype=torch.bfloat16)]
    run = on(device, model)
    with torch.no_grad():
        results, expected = run(*inputs), model(*inputs)
    assert [(r.shape, r.dtype) for r in results] == [(e.shape, e.dtype) for e in expected]
    cached = device.statistics()["cached"]
    assert cached > 5
    with torch.no_grad():
        run(*inputs)
    assert device.statistics()["cached"] == cached


def test_the_package_keeps_weights_and_warns_of_mock_devices(mock, compiled, monkeypatch):
    binary, arguments, expected = compiled
    device = mock()
    with pytest.warns(UserWarning, match="mock device: it computes nothing"):
        run = device.load(binary)
    commands = asked(device, monkeypatch)
    for _ in range(2):
        (result,) = run(arguments, range(5))  # the last input is on the device, where the program deallocates it
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert commands == ["keep"] * 5 + ["run"] * 2


@pytest.mark.filterwarnings("ignore:.*mock device")
def test_options_of_opening_reach_the_package(mock, compiled):
    binary, arguments, expected = compiled
    device = mock("two chips", mesh_shape=(1, 2), num_hw_cqs=2, enable_program_cache=False)
    for place in (device, device.submesh((1, 1), (0, 1))):
        (result,) = place.load(binary)(arguments)  # every chip has the same values
        assert result.shape == expected.shape
    assert device.statistics()["cached"] == 0
    with pytest.raises(WorkerError, match=r"Requested mesh shape .* requires 4 devices"):
        mock("two chips", mesh_shape=(2, 2)).statistics()


def test_a_written_program_runs_by_itself(ttnn_folder, compiled, tmp_path):
    write_program(compiled[0], tmp_path / "net.py")
    command = [environment.python_in(ttnn_folder), "net.py", "--calls", "2"]
    variables = environment.variables(ttnn_folder, "n150")
    options = {"capture_output": True, "text": True, "timeout": 60, "check": False}
    done = subprocess.run(command, env=variables, cwd=tmp_path, **options)
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.sub(r"[\d.]+ ms", "ms", done.stdout) == "call 0: ms\ncall 1: ms\noutput 0: FLOAT32 [3, 4]\n"


def test_a_written_program_with_a_recording_runs_by_itself(ttnn_folder, tmp_path):
    """Running a trace is left out, since the library crashes at it on mock devices. Ops of all kinds are recorded."""
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 10)]
    x, config = torch.randn(2, 3, 8, 8), CompilerConfig(enable_trace=True)
    made = tt_torch.compile_model(nn.Sequential(*layers).eval(), (x,), config)
    write_program(made.binary, tmp_path / "net.py")
    script = Path(__file__).with_name("recorded_on_mock.py")
    command = [environment.python_in(ttnn_folder), script, tmp_path / "net.py", "--calls", "3"]
    variables = environment.variables(ttnn_folder, "n150")
    options = {"capture_output": True, "text": True, "timeout": 60, "check": False}
    done = subprocess.run(command, env=variables, cwd=tmp_path, **options)
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.sub(r"[\d.]+ ms", "ms", done.stdout).splitlines()[-5:] == [
        *(f"call {i}: ms" for i in range(3)),
        "output 0: FLOAT32 [2, 10]",
        "['execute', 'execute', 'execute']",
    ]


def test_the_package_takes_the_calls_of_a_trace(ttnn_folder, tmp_path):
    """Running a trace and waiting for a queue are left out, since the library crashes at them on mock devices."""
    script = Path(__file__).with_name("trace_on_mock.py")
    command = [environment.python_in(ttnn_folder), script, Path(ttnn_device.__file__).parent]
    variables = environment.variables(ttnn_folder, "n150")
    options = {"capture_output": True, "text": True, "timeout": 60, "check": False}
    done = subprocess.run(command, env=variables, cwd=tmp_path, **options)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-4:] == ["[3, 40] 0 0", "[3, 40] 1 3", "[3, 40] 1 6", "closed"]
