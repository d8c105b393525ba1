"""The same model on several devices at once: a copy of its program on each, with calls that overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

import torch

from tt_torch.config import CompilerConfig
from tt_torch.driver.devices import Device, available_chips, open_device
from tt_torch.driver.pending import to_host
from tt_torch.dynamo.types import Result


def on_each_device(
    start: Callable[[Device], Result], config: CompilerConfig, devices: Sequence[Device] | None = None
) -> list[Result]:
    """Calls `start` with each device and returns the results in order. Raises the error of the first call that failed.

    `start` compiles for the device and makes an asynchronous call. Without `devices`, all available chips are opened,
    and closed afterwards.
    """
    with _opened(config) if devices is None else nullcontext(devices) as each:
        calls = []
        for device in each:
            calls.append(start(device))
            torch.compiler.reset()  # otherwise the copies count against Dynamo's limit of recompilations
        return [to_host(call) for call in calls]


@contextmanager
def _opened(config: CompilerConfig) -> Iterator[list[Device]]:
    mesh = open_device(config, [1, available_chips(config)])
    chips = [mesh.submesh([1, 1], [0, i]) for i in range(available_chips(config))]
    try:
        yield chips
    finally:
        for device in (*chips, mesh):
            device.close()
