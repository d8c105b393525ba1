"""Testers that several files of tests use."""

from __future__ import annotations

import torch
from torch import nn

from tt_torch.testing import ModelTester


class Noting:
    """A stand-in for the fixture `record_property`. It keeps the name and the value of each call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []

    def __call__(self, name: str, value: object) -> None:
        self.calls.append((name, value))

    def all(self, name: str) -> list[object]:
        return [value for called, value in self.calls if called == name]


class MlpTester(ModelTester):
    def _load_model(self):
        return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))

    def _load_inputs(self):
        return torch.randn(3, 8)
