"""Several processes share a mesh: they give the bits of one process, and a fault is an error in all within 30 s."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from forked import Script, Server

from tt_torch.config import CompilerConfig
from tt_torch.driver import devices
from tt_torch.errors import DeviceError

HERE = Path(__file__).parent


def start(forks: Server, count: int, program: str, *arguments: object, **variables: str) -> list[Script]:
    """Starts the processes as a launcher does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        **os.environ,
        "WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        **variables,
    }
    ranks = range(count)
    return [forks.start(HERE / program, *arguments, env={**common, "RANK": str(rank)}) for rank in ranks]


def test_processes_share_the_device_of_a_mesh_and_of_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[dict[str, object]] = []

    def opening(_config: CompilerConfig, _shape: object, **options: object) -> SimpleNamespace:
        opened.append(options)
        return SimpleNamespace(is_open=True)

    monkeypatch.setattr(devices, "one_process", lambda: SimpleNamespace(hosts=lambda: "both"))
    monkeypatch.setattr(devices, "open_device", opening)
    monkeypatch.setattr(devices, "_shared", {})
    devices.default_device(CompilerConfig(device="ttnn"))
    devices.default_device(CompilerConfig(mesh_shape=(1, 2)))
    assert opened == [{}, {"hosts": "both"}]
    with pytest.raises(DeviceError, match="share the mesh, and device='ttnn' opens only a whole mesh"):
        devices.default_device(CompilerConfig(device="ttnn", mesh_shape=(1, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.nightly)])
def test_results_are_those_of_one_process(tmp_path: Path, forks: Server, count: int) -> None:
    """The bits are equal for split layers and batches (compiled, eager, ahead of time), and for changed placements."""
    alone = forks.run(HERE / "host_programs.py", tmp_path)
    assert alone.returncode == 0, alone.stderr
    expected = torch.load(tmp_path / "alone.pt")
    if count == 4:  # a stage has four chips, and a mesh with one chip per process is a mesh of processes
        del expected["layers in two stages"]
    for script in start(forks, count, "host_programs.py", tmp_path, *expected):
        done = script.ended()
        assert done.returncode == 0 and "unwaited" not in done.stderr, done.stderr
    for rank in range(count):
        found = torch.load(tmp_path / f"{rank}.pt")
        assert found.keys() == expected.keys()
        for name in found:
            torch.testing.assert_close(found[name], expected[name], rtol=0, atol=0, msg=f"{name} of process {rank}")


PLACE = "MeshError: the processes that share the mesh are not at the same place: process 0: "
GONE = "HostError: another process that shares the mesh has ended, or does not answer: "
# What the first and the second process say; one text is for both.
SAID = {
    "another mesh": "MeshError: the processes ask for different meshes: process 0: (4, 2); process 1: (2, 4)",
    "a mesh of processes": "MeshError: the processes ask for different meshes: process 0: (8,); process 1: (2,)",
    "seven chips": "MeshError: the mesh (7,) has 7 chips, which 2 processes cannot share equally",
    "a call": "True",
    "an exception in the middle": (
        "HostError: the process 1 has failed: KernelError: host_faults::checked.default at ",
        "KernelError: host_faults::checked.default at ",
    ),
    "a call after it": "True",
    "other inputs": PLACE + "the inputs ",
    "other data": PLACE + "a tensor that is split over the chips ",
    "other values of a plain result": PLACE + "the value of full_tensor() ",
    "other random numbers": PLACE + "the random numbers of a DTensor, which follow from torch.manual_seed, ",
    "other random numbers in a program": PLACE + "the inputs ",
    "another program": PLACE + "a call of program 0 of the binary ",
    "only one process calls": PLACE + "a tensor that is split over the chips ",
    "calls that overlap": "AsyncError: several processes share the mesh",
    "a device of the user": "DeviceError: several processes share the mesh",
    "a call after all": "True",
    "a process that is late": GONE,
    "a call after that": GONE,
    "another mesh after that": "True",
    "Ctrl-C while another process is late": ("KeyboardInterrupt", GONE),
    "a call after Ctrl-C": ("HostError: this process was interrupted in a step that it shares with others", GONE),
    "a process is killed": (GONE, None),
}


def test_a_fault_is_an_error_in_all_processes(forks: Server) -> None:
    """Two processes go through all faults in turn. Each fault therefore also shows what the fault before it left."""
    processes = [script.ended(300) for script in start(forks, 2, "host_faults.py", TT_TORCH_HOST_TIMEOUT="24")]
    texts = [process.stdout for process in processes]
    assert [process.returncode for process in processes] == [0, -9], texts
    for position, text in enumerate(texts):
        said = dict(re.findall(r"^(.+?), in time: (.+)$", text, re.MULTILINE))
        for name, expected in SAID.items():
            beginning = expected[position] if isinstance(expected, tuple) else expected
            if beginning is None:
                assert name not in said
            else:
                assert said.get(name, "").startswith(beginning), (position, name, text)
