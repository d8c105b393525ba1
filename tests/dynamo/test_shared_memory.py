"""Outputs that share memory: a write to one of them is seen in the others as in eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

import tt_torch

VIEWS: dict[str, Callable[[torch.Tensor], Any]] = {
    "reshaped": lambda x: ((y := x + 1), y.view(-1), y.t(), y[1:]),
    "expanded": lambda x: ((y := x[:1] + 1), y.expand(3, 4)),
    "overlapping slices": lambda x: ((y := x.sin())[:, :3], y[:, 1:]),
    "split": lambda x: (x * 2).split(2, 1),
    "one twice": lambda x: ((y := x + 1), y, y.detach()),
    "diagonal": lambda x: ((y := x + 1), y.diagonal(), y[1]),
    "diagonal alone": lambda x: ((x + 1).diagonal(1), x),
    "changed in place": lambda x: ((y := x + 1), y.neg_()),
    "not converted": lambda x: (x.sum(0), (y := x.sum(1)), y.float()),
    "not shared": lambda x: (x + 1, (x + 1).clone()),
    "complex": lambda x: ((y := torch.complex(x, x + 1)), y[0]),
    "changed input": lambda x: (x.add_(1).view(-1), (y := x * 1), y[0]),
    "windows": lambda x: ((y := x + 1), y.unfold(1, 3, 1)),
    "windows alone": lambda x: (x + 1).unfold(0, 2, 1),
    "given strides": lambda x: ((y := x.t() + 1), y[:2], torch.as_strided(y, (3, 2), (1, 1), 2)),
    "windows of an input": lambda x: (x.unfold(0, 2, 1), x + 1),
    "mean and a view": lambda x: ((y := x + 1).mean(), y[:2], y[1:]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_writes_are_seen_as_in_eager(name: str) -> None:
    results = []
    for run in (VIEWS[name], torch.compile(VIEWS[name], backend=tt_torch.backend)):
        outputs = tree_leaves(run(torch.arange(12.0).reshape(3, 4)))
        outputs[0].mul_(100)
        outputs[-1].select(0, 0).add_(5)
        results.append(outputs)
    for expected, got in zip(*results, strict=True):
        assert got.stride() == expected.stride()
        torch.testing.assert_close(got, expected)


def test_a_change_of_an_output_does_not_change_what_backward_saved() -> None:
    """The saved activation has memory of its own, so the gradient is that of the values before the change."""
    w = torch.ones(4, requires_grad=True)
    whole, part = torch.compile(lambda w: ((y := w.exp()), y[:2]), backend=tt_torch.backend)(w)
    with torch.no_grad():
        part.add_(1)
    torch.testing.assert_close(whole[:2], part)
    whole.sum().backward()
    torch.testing.assert_close(w.grad, torch.ones(4).exp())
