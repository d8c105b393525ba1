"""The devices that exist, and the current device of each thread."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from typing import Any

import torch

import tt_torch.device._device as native


def device_count() -> int:
    """The number of chips: TT_TORCH_DEVICE_COUNT, or 1 if it is not set."""
    return native.device_count()


def is_available() -> bool:
    return device_count() > 0


def is_initialized() -> bool:
    """True, always: a chip is opened when the first tensor is made on it."""
    return True


def init() -> None:
    """Does nothing: a chip is opened when the first tensor is made on it."""


def current_device() -> int:
    return torch.accelerator.current_device_index()


def set_device(device: Any) -> None:
    """Makes a device (index, name or torch.device) the current device of this thread."""
    torch.accelerator.set_device_index(device)


def device(device: Any) -> AbstractContextManager[None]:
    """A context in which a device (index, name or torch.device) is the current one; None changes nothing."""
    return contextlib.nullcontext() if device is None else torch.accelerator.device_index(index_of(device))


def index_of(device: Any) -> int:
    """The index of a device that is given as an index, a name or a torch.device.

    A device without an index, such as "tt" or None, means the current device. Raises ValueError for a device of another
    type.
    """
    if isinstance(device, int):
        return device
    if device is None:
        return current_device()
    device = torch.device(device)
    if device.type != "tt":
        raise ValueError(f"expected a device of type tt, got {device}")
    return current_device() if device.index is None else device.index
