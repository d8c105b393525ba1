"""`any` and `all` of uint8 give 0 or 1 in uint8, also along a dimension of size 1."""

from __future__ import annotations

import pytest
import torch

import tt_torch


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.float32], ids=str)
def test_any_and_all(dtype: torch.dtype) -> None:
    def both(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        whole = [f(z) for f in (torch.any, torch.all) for z in (x, y)]
        return [
            *whole,
            *(f(z, dim, keepdim=True) for f in (torch.any, torch.all) for z in (x, y) for dim in (0, (0, 1))),
        ]

    x = torch.tensor([[0, 3, 1], [255, 2, 4]]).to(dtype)
    y = torch.tensor([[7, 0, 255]]).to(dtype)
    compiled = torch.compile(both, backend=tt_torch.backend, options={"fallback": "error"})
    for got, expected in zip(compiled(x, y), both(x, y), strict=True):
        assert got.dtype == expected.dtype
        torch.testing.assert_close(got, expected)
