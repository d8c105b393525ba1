"""device="tt": eager PyTorch on the device, and the module `torch.tt`.

Importing this module registers the device with PyTorch. PyTorch imports it by itself, through the entry point
`torch.backends`, unless TORCH_DEVICE_BACKEND_AUTOLOAD=0.
"""

from __future__ import annotations


def autoload() -> None:
    """The entry point of the group `torch.backends`. It does nothing, because importing this module has registered the
    device.

    It is defined above the imports, because importing PyTorch below may already call it.
    """


import torch  # noqa: E402

import tt_torch.device.ops  # noqa: E402, F401 - registers
from tt_torch import transformers_compile  # noqa: E402
from tt_torch.device import collectives, tt  # noqa: E402
from tt_torch.device.compiled_regions import set_rules  # noqa: E402
from tt_torch.torch_private.dlpack import announce_to_dlpack  # noqa: E402
from tt_torch.torch_private.ops import define_when_named, register_device_module  # noqa: E402


def _register() -> None:
    torch.utils.rename_privateuse1_backend("tt")  # type: ignore[attr-defined]
    register_device_module("tt", tt)
    torch.set_autocast_dtype("tt", torch.bfloat16)
    torch.utils.generate_methods_for_privateuse1_backend(for_packed_sequence=True, for_storage=True)  # type: ignore[attr-defined]
    announce_to_dlpack("tt")
    collectives.register()
    set_rules(tt)
    define_when_named("tt", "tt_torch.tt_ops")
    transformers_compile.install()


_register()
