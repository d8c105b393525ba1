"""The device's memory in bytes: `torch.tt.memory_allocated` and others. Most are PyTorch's generic functions."""

from __future__ import annotations

import torch
from torch.accelerator import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
)

from tt_torch.device.chips import DeviceLike

__all__ = [
    "empty_cache", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_reserved", "memory_stats", "memory_summary", "reset_peak_memory_stats",
]  # fmt: skip

_ROWS = {
    "allocated": "allocated_bytes.all",
    "requested": "requested_bytes.all",
    "reserved": "reserved_bytes.all",
}


def mem_get_info(device: DeviceLike = None) -> tuple[int, int]:
    """The free and the total bytes of the device's DRAM."""
    return torch.accelerator.get_memory_info(device)


def memory_summary(device: DeviceLike = None) -> str:
    """A printable table of bytes: allocated for tensors, requested by tensors, and reserved including the cache."""
    stats = memory_stats(device)
    free, total = mem_get_info(device)
    lines = [f"{'bytes':<12}{'now':>16}{'peak':>16}"]
    for name, key in _ROWS.items():
        lines.append(f"{name:<12}{stats[f'{key}.current']:>16,}{stats[f'{key}.peak']:>16,}")
    lines.append(f"{'free':<12}{free:>16,}{'of ' + format(total, ','):>20}")
    lines.append(f"{stats['allocation.all.current']:,} tensors, {stats['num_ooms']} failed allocations")
    return "\n".join(lines)
