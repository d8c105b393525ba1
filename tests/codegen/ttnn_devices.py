"""Functions that the tests of device="ttnn" share."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from tt_torch.codegen.device import TtnnDevice
from tt_torch.config import BackendOptions, CompilerConfig

STAND_IN = str(Path(__file__).with_name("stand_in"))


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)).eval()


def on(device: TtnnDevice, function):
    options = BackendOptions(devices=[device], compiler_config=CompilerConfig(fallback="error"))
    return torch.compile(function, backend="tt", options=options)


def asked(device: TtnnDevice, monkeypatch) -> list[str]:
    """The list of commands that a device's worker gets from now on, which grows as they are sent."""
    commands = []
    with device.session() as session:
        ask = session.ask
        monkeypatch.setattr(session, "ask", lambda c, a=None: (commands.append(c), ask(c, a))[1])
    return commands
