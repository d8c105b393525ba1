"""device="tt": eager PyTorch on the device, and the module `torch.tt`.

Importing this registers the device with PyTorch; PyTorch does so itself when it is imported, through the entry
point `torch.backends`, unless TORCH_DEVICE_BACKEND_AUTOLOAD=0. Streams and memory functions are PyTorch's own
generic ones: what holds for `torch.accelerator` holds here.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Event, Stream

from tt_torch.device import _device, ops  # noqa: F401 - registers
from tt_torch.device._device import clear_fallback_counts, fallback_counts
from tt_torch.device.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_peak_memory_stats,
)
from tt_torch.device.properties import DeviceProperties, get_device_name, get_device_properties
from tt_torch.device.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)

__all__ = [
    "DeviceProperties", "Event", "Stream", "clear_fallback_counts", "current_device", "current_stream", "device",
    "device_count", "empty_cache", "fallback_counts", "get_amp_supported_dtype", "get_device_name",
    "get_device_properties", "get_rng_state", "get_rng_state_all", "init", "initial_seed", "is_available",
    "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved", "memory_stats", "memory_summary",
    "reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_rng_state", "set_rng_state_all", "set_stream",
    "stream", "synchronize",
]  # fmt: skip


def device_count() -> int:
    """Chips that there are: TT_TORCH_DEVICE_COUNT, 1 if it is not set."""
    return _device.device_count()


def is_available() -> bool:
    return device_count() > 0


def is_initialized() -> bool:
    """Always: a chip is opened when the first tensor is made on it."""
    return True


def init() -> None:
    """Nothing: a chip is opened when the first tensor is made on it."""


def current_device() -> int:
    return torch.accelerator.current_device_index()


def set_device(device: Any) -> None:
    """Makes a device (index, name or torch.device) the current one of this thread."""
    torch.accelerator.set_device_index(device)


class device(torch.accelerator.device_index):
    """Context manager that makes a device (index, name or torch.device) the current one; None changes nothing."""

    def __init__(self, device: Any) -> None:
        super().__init__(None if device is None else torch.accelerator._get_device_index(device, optional=True))


def synchronize(device: Any = None) -> None:
    """Waits until the device has done all its work."""
    torch.accelerator.synchronize(device)


def current_stream(device: Any = None) -> Stream:
    return torch.accelerator.current_stream(device)


def set_stream(stream: Stream) -> None:
    torch.accelerator.set_stream(stream)


def stream(stream: Stream) -> Stream:
    """A context in which the stream is the current one."""
    return stream


def is_bf16_supported() -> bool:
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """What `torch.autocast("tt")` takes; bfloat16 is the default."""
    return [torch.bfloat16]


def _is_in_bad_fork() -> bool:
    return False  # the emulated device is memory of the process: a fork has a copy


def _register() -> None:
    torch.utils.rename_privateuse1_backend("tt")
    torch._register_device_module("tt", sys.modules[__name__])
    torch.set_autocast_dtype("tt", torch.bfloat16)
    torch.utils.generate_methods_for_privateuse1_backend(for_packed_sequence=True, for_storage=True)


def autoload() -> None:
    """The entry point of the group `torch.backends`; importing its module has done it all."""


_register()
