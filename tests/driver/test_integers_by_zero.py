"""A division of integers by zero is an error in PyTorch, also in a compiled graph."""

from __future__ import annotations

import pytest
import torch

import tt_torch


@pytest.mark.parametrize("name", ["floor", "trunc", "remainder", "fmod"])
def test_the_error_of_eager(name: str) -> None:
    def divided(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if name in ("floor", "trunc"):
            return torch.div(x, y, rounding_mode=name)
        return torch.remainder(x, y) if name == "remainder" else torch.fmod(x, y)

    x, y = torch.tensor([5, -7], dtype=torch.int32), torch.tensor([0, 2], dtype=torch.int32)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.compile(divided, backend=tt_torch.backend)(x, y)
