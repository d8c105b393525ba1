"""Eager training on the device agrees with the CPU, in one loop with all the usual parts."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
        self.block = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64))
        self.head = nn.Linear(64, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        return self.head(x + checkpoint(self.block, x, use_reentrant=False))


def train(model: nn.Module, data: TensorDataset, device: str) -> tuple[list[float], list[float]]:
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    losses, norms = [], []
    for x, y in DataLoader(data, batch_size=8, pin_memory=device != "cpu"):
        assert x.is_pinned() == (device != "cpu")
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x.to(device, non_blocking=True)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        norms.append(clip_grad_norm_(model.parameters(), 0.5).item())
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses, norms


def test_a_whole_training_loop() -> None:
    model, data = Model(), TensorDataset(torch.randn(32, 3, 6, 6), torch.randint(0, 5, (32,)))
    torch.tt.clear_fallback_counts()
    ours, theirs = train(copy.deepcopy(model), data, "tt"), train(model, data, "cpu")
    torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=1e-2)  # autocast has other lists of bfloat16 ops
    assert torch.tt.fallback_counts() == {}
