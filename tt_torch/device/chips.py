"""The devices that exist, and the current device of each thread."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import TypeAlias

import torch

import tt_torch.device._device as native

DeviceLike: TypeAlias = int | str | torch.device | None  # an index, a name or a device; None: the current device


def device_count() -> int:
    """The number of chips: TT_TORCH_DEVICE_COUNT, 1 if it is not set, 0 if it is not a number from 1 to 8."""
    return int(native.device_count())


def is_available() -> bool:
    """Whether there is a device. It is False only if TT_TORCH_DEVICE_COUNT is not valid."""
    return device_count() > 0


def is_initialized() -> bool:
    """True, always: a chip is opened when the first tensor is made on it."""
    return True


def init() -> None:
    """Does nothing: a chip is opened when the first tensor is made on it."""


def current_device() -> int:
    """The number of the current chip."""
    return torch.accelerator.current_device_index()


def set_device(device: DeviceLike) -> None:
    """Makes a device (index, name or torch.device) the current device of this thread."""
    torch.accelerator.set_device_index(device)


def device(device: DeviceLike) -> AbstractContextManager[None]:
    """A context in which a device (index, name or torch.device) is the current one; None changes nothing."""
    return contextlib.nullcontext() if device is None else torch.accelerator.device_index(index_of(device))


def index_of(device: DeviceLike) -> int:
    """The index of a device that is given as an index, a name or a torch.device.

    A device without an index, such as "tt" or None, means the current device. Raises ValueError for a device of another
    type.
    """
    if isinstance(device, int):
        return device
    if device is None:
        return current_device()
    given = torch.device(device)
    if given.type != "tt":
        raise ValueError(f"expected a device of type tt, got {given}")
    return current_device() if given.index is None else given.index
