"""device="tt": eager PyTorch on the device, and the module `torch.tt`.

Importing this module registers the device with PyTorch. PyTorch imports it by itself, through the entry point
`torch.backends`, unless TORCH_DEVICE_BACKEND_AUTOLOAD=0.
"""

from __future__ import annotations

import torch

import tt_torch.device.ops  # noqa: F401 - registers
from tt_torch.device import tt
from tt_torch.device.compiled_regions import set_rules
from tt_torch.torch_private.ops import register_device_module


def _register() -> None:
    torch.utils.rename_privateuse1_backend("tt")  # type: ignore[attr-defined]
    register_device_module("tt", tt)
    torch.set_autocast_dtype("tt", torch.bfloat16)
    torch.utils.generate_methods_for_privateuse1_backend(for_packed_sequence=True, for_storage=True)  # type: ignore[attr-defined]
    set_rules(tt)


def autoload() -> None:
    """The entry point of the group `torch.backends`. It does nothing, because importing this module has registered the
    device."""


_register()
