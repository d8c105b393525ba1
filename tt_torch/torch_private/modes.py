"""Modes of PyTorch that change what ops do. Importing this module imports nothing that torch does not import."""

from __future__ import annotations

from torch.utils._python_dispatch import (
    _disable_current_modes as without_modes,  # 2.13.0: without it polynomials cannot be fitted during a capture
)

__all__ = ["without_modes"]
