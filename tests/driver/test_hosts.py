"""Several processes that share a mesh of chips: the bits of one process, and errors in all of them within 30 s."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import torch

HERE = Path(__file__).parent


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}  # processes beside others


def start(count: int, program: str, *arguments: str, **variables: str) -> list[subprocess.Popen[str]]:
    """Starts the processes as a launcher does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {
        **ENVIRONMENT,
        "WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        **variables,
    }
    command = [sys.executable, str(HERE / program), *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return [subprocess.Popen(command, env={**common, "RANK": str(rank)}, **pipes) for rank in range(count)]


def ended(processes: list[subprocess.Popen[str]]) -> list[tuple[str, str]]:
    try:
        return [process.communicate(timeout=300) for process in processes]
    finally:
        for process in processes:
            process.kill()


def test_results_are_those_of_one_process(tmp_path: Path) -> None:
    """Equal bits for split layers and batches, compiled, eager and ahead of time, and for changes of placements."""
    command = [sys.executable, str(HERE / "host_programs.py"), str(tmp_path)]
    alone = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert alone.returncode == 0, alone.stderr
    expected = torch.load(tmp_path / "alone.pt")
    processes = start(2, "host_programs.py", str(tmp_path))
    for process, (_, errors) in zip(processes, ended(processes), strict=True):
        assert process.returncode == 0 and "unwaited" not in errors, errors
    for rank in range(2):
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
    "another program": PLACE + "a call of program 0 of the binary ",
    "only one process calls": PLACE + "a tensor that is split over the chips ",
    "calls that overlap": "AsyncError: several processes share the mesh",
    "a device of the user": "DeviceError: several processes share the mesh",
    "a call after all": "True",
    "a process that is late": GONE,
    "a call after that": GONE,
    "another mesh after that": "True",
    "a process is killed": (GONE, None),
}


def test_a_fault_is_an_error_in_all_processes() -> None:
    """Two processes go through all faults, one after the other, so that each one also shows what the last one left."""
    processes = start(2, "host_faults.py", TT_TORCH_HOST_TIMEOUT="24")
    texts = [text for text, _ in ended(processes)]
    assert [process.returncode for process in processes] == [0, -9], texts
    for position, text in enumerate(texts):
        said = dict(re.findall(r"^(.+?), in time: (.+)$", text, re.MULTILINE))
        for name, expected in SAID.items():
            beginning = expected[position] if isinstance(expected, tuple) else expected
            if beginning is None:
                assert name not in said
            else:
                assert said.get(name, "").startswith(beginning), (position, name, text)
