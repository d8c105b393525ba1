"""Ops that ran on the CPU because the device has no kernel for them."""

from __future__ import annotations

import tt_torch.device._device as native


def fallback_counts() -> dict[str, int]:
    """How often each op ran on the CPU since the counts were cleared. Example: {"aten::linalg_qr.out": 2}."""
    return dict(native.fallback_counts())


def clear_fallback_counts() -> None:
    """Sets all counts of `fallback_counts` to zero."""
    native.clear_fallback_counts()
