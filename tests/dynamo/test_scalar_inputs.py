"""Writes to inputs of float64 without dimensions, such as a buffer that counts."""

from __future__ import annotations

import pytest
import torch

import tt_torch


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor(3.0, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = self.count.unsqueeze(0)
        self.count.add_(1)
        return x + 1, before


def test_a_buffer_counts_although_nothing_reads_it() -> None:
    model = Counting()
    compiled = torch.compile(model, backend=tt_torch.backend)
    for expected in (4.0, 5.0):
        _, view = compiled(torch.ones(2))
        assert view.tolist() == [expected] and model.count.item() == expected


@pytest.mark.parametrize("scale", [2.0, 0.25])
def test_a_python_number_beside_such_a_write(scale: float) -> None:
    def function(x: torch.Tensor, n: torch.Tensor, scale: float) -> torch.Tensor:
        n.mul_(3)
        return x * scale

    compiled, n = torch.compile(function, backend=tt_torch.backend), torch.tensor(1.0, dtype=torch.float64)
    assert compiled(torch.ones(2), n, scale).tolist() == [scale] * 2
    assert compiled(torch.ones(2), n, 3 * scale).tolist() == [3 * scale] * 2
    assert n.item() == 9 and compiled(torch.ones(2), n, scale).tolist() == [scale] * 2
