"""Modes of PyTorch that change what ops do. Importing this module imports nothing that torch does not import."""

from __future__ import annotations

from torch._C import (
    _get_dispatch_mode,  # 2.13.0: without it make_fx would record the results of a program as memory without values
    _is_tracing,  # 2.13.0: without it torch.jit.trace would record the same
    _TorchDispatchModeKey,  # 2.13.0: as _get_dispatch_mode
)
from torch.utils._python_dispatch import (
    _disable_current_modes as without_modes,  # 2.13.0: without it polynomials cannot be fitted during a capture
)

__all__ = ["is_traced", "without_modes"]


def is_traced() -> bool:
    """Whether `make_fx` or `torch.jit.trace` records the ops of PyTorch that run now."""
    return _get_dispatch_mode(_TorchDispatchModeKey.PROXY) is not None or _is_tracing()
