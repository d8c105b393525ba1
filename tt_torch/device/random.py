"""Random numbers of the device. Each chip has a generator; the same seed gives the numbers that the CPU gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from tt_torch.device import _device


def _index(device: Any) -> int:
    return torch.accelerator._get_device_index(device, optional=True)


def manual_seed(seed: int) -> None:
    """Seeds the generator of the current device."""
    _device.manual_seed(-1, seed % 2**64)


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices; `torch.manual_seed` does this too."""
    for index in range(_device.device_count()):
        _device.manual_seed(index, seed % 2**64)


def seed() -> int:
    """Seeds the current device's generator with a random number, and returns it."""
    chosen = torch.Generator().seed()
    manual_seed(chosen)
    return chosen


def seed_all() -> None:
    manual_seed_all(torch.Generator().seed())


def initial_seed() -> int:
    return _device.initial_seed(-1)


def get_rng_state(device: Any = "tt") -> torch.Tensor:
    """The generator's state, as a uint8 tensor on the CPU."""
    return torch.frombuffer(bytearray(_device.rng_state(_index(device))), dtype=torch.uint8)


def set_rng_state(new_state: torch.Tensor, device: Any = "tt") -> None:
    _device.set_rng_state(_index(device), new_state.cpu().contiguous().numpy().tobytes())


def get_rng_state_all() -> list[torch.Tensor]:
    return [get_rng_state(index) for index in range(_device.device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
