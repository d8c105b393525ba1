"""Other backends and eager PyTorch are the same before and after `tt_torch.backend` was used in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("other_backends.py")


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    environment = os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    run = [sys.executable, PROGRAM]
    done = subprocess.run(run, env=environment, check=True, capture_output=True, text=True, timeout=300)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_all_is_as_before(report: dict[str, Any]) -> None:
    for fact, before in report["before"].items():
        assert report["after"][fact] == before, fact


@pytest.mark.slow
def test_the_programs_show_what_a_setting_would_change(report: dict[str, Any]) -> None:
    """Without our settings, Dynamo leaves recurrent layers and fused optimizers to eager PyTorch.

    If this changes in PyTorch, the test above compares nothing.
    """
    for backend, programs in report["before"]["programs"].items():
        assert programs["lstm"] == [0, 0, ["Attempted to wrap RNN, GRU, or LSTM"]], backend
        assert "Skip calling `torch.compiler.disable()`d function" in programs["fused adam"][2], backend
        assert programs["layer"][0] == 1, backend


@pytest.mark.slow
def test_few_functions_of_pytorch_are_replaced(report: dict[str, Any]) -> None:
    """`torch_private/` gives the reasons. One of them asks for our backend, and the others ask for the device "tt".

    `init_device_mesh` is one function with two names.
    """
    assert report["replaced"] == [
        "torch.Tensor.__dlpack_device__",
        "torch._dynamo.convert_frame._compile",
        "torch.distributed.device_mesh.DeviceMesh._setup_world_group_and_device",
        "torch.distributed.device_mesh.init_device_mesh",
        "torch.distributed.init_device_mesh",
    ]


def test_importing_alters_no_distribution() -> None:
    program = """
import torch, tt_torch
tt_torch.backend, tt_torch.compile_model
try:
    torch.distributions.Normal(0.0, -1.0)
except ValueError:
    raise SystemExit(0)
raise SystemExit("a bad scale is accepted")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
