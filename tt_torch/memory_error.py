"""DeviceMemoryError. It is a file of its own because its base is in PyTorch, whose import takes a second: commands that
need no PyTorch import `tt_torch.errors` alone."""

from __future__ import annotations

import torch

from tt_torch.errors import TTTorchError

__all__ = ["DeviceMemoryError"]


class DeviceMemoryError(TTTorchError, torch.OutOfMemoryError, MemoryError):
    """Device memory (DRAM or L1) is exhausted; the message lists the largest live buffers."""


DeviceMemoryError.__module__ = "tt_torch.errors"  # where users find it
