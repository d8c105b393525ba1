"""The module `torch.tt`. Streams, events and most functions on memory are PyTorch's own, as in `torch.accelerator`.

The file must be named `tt.py`. In a compiled region, Dynamo replaces `torch.get_device_module()` by an attribute of
`torch`. The name of this attribute is the last part of the module's name.
"""

from __future__ import annotations

import torch

from tt_torch.device.chips import (
    current_device,
    device,
    device_count,
    init,
    is_available,
    is_initialized,
    set_device,
)
from tt_torch.device.fallback import clear_fallback_counts, fallback_counts
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
from tt_torch.device.streams import Event, Stream, current_stream, set_stream, stream, synchronize

__all__ = [
    "DeviceProperties", "Event", "Stream", "clear_fallback_counts", "current_device", "current_stream", "device",
    "device_count", "empty_cache", "fallback_counts", "get_amp_supported_dtype", "get_device_name",
    "get_device_properties", "get_rng_state", "get_rng_state_all", "init", "initial_seed", "is_available",
    "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved", "memory_stats", "memory_summary",
    "reset_peak_memory_stats", "seed", "seed_all", "set_device", "set_rng_state", "set_rng_state_all", "set_stream",
    "stream", "synchronize",
]  # fmt: skip


def is_bf16_supported() -> bool:
    """True: bfloat16 is the fast type of the device."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that `torch.autocast("tt")` accepts; bfloat16 is the default."""
    return [torch.bfloat16]


def _is_in_bad_fork() -> bool:
    return False  # the emulated device is memory of the process, so a fork has its own copy
