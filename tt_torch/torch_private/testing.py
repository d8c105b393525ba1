"""Private names of PyTorch's tests: tolerances."""

from __future__ import annotations

from torch.testing._comparison import default_tolerances  # 2.13.0: without it sweeps need their own tolerances

__all__ = ["default_tolerances"]
