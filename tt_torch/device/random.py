"""Random numbers of the device. Each chip has a generator. A seed gives the same numbers as on the CPU."""

from __future__ import annotations

from collections.abc import Iterable

import torch

import tt_torch.device._device as native
from tt_torch.device.chips import DeviceLike, device_count, index_of
from tt_torch.torch_private.modes import without_modes


def manual_seed(seed: int) -> None:
    """Seeds the generator of the current device."""
    native.manual_seed(-1, seed % 2**64)


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices, as `torch.manual_seed` does."""
    for index in range(device_count()):
        native.manual_seed(index, seed % 2**64)


def seed() -> int:
    """Seeds the current device's generator with a random number, and returns this number."""
    chosen = torch.Generator().seed()
    manual_seed(chosen)
    return chosen


def seed_all() -> None:
    """Gives the generators of all chips one new random seed."""
    manual_seed_all(torch.Generator().seed())


def initial_seed() -> int:
    """The seed of the current chip's generator."""
    return int(native.initial_seed(-1))


def get_rng_state(device: DeviceLike = "tt") -> torch.Tensor:
    """The generator's state, as a uint8 tensor on the CPU."""
    return torch.frombuffer(bytearray(native.rng_state(index_of(device))), dtype=torch.uint8)


def set_rng_state(new_state: torch.Tensor, device: DeviceLike = "tt") -> None:
    """Sets the state of a chip's generator to one that `get_rng_state` has returned."""
    with without_modes():  # the state has values also while PyTorch traces with fake tensors
        native.set_rng_state(index_of(device), new_state.cpu().contiguous().numpy().tobytes())


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of the generators of all chips."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets the states of the generators of all chips, in the order of the chips."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
