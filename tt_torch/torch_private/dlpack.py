"""DLPack for tensors on "tt"."""

from __future__ import annotations

import functools
from enum import IntEnum

import torch
from torch.utils.dlpack import DLDeviceType


# 2.13.0: it refuses every device from outside of PyTorch, because it looks for a device of the name "privateuse1".
# C++ exports and imports such tensors as kDLExtDev.
def announce_to_dlpack(device_type: str) -> None:
    """Makes `Tensor.__dlpack_device__` answer for tensors on a device from outside of PyTorch, so that `from_dlpack`
    takes them. It answers as before for all other tensors."""
    known = torch.Tensor.__dlpack_device__

    @functools.wraps(known)
    def place(self: torch.Tensor) -> tuple[IntEnum, int]:
        if self.device.type == device_type:
            return DLDeviceType.kDLExtDev, self.device.index
        return known(self)

    torch.Tensor.__dlpack_device__ = place  # type: ignore[method-assign]
