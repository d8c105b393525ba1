"""An infinity or NaN reaches only the averages, sums and gradients of its own windows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import inf, nan

import tt_torch

Pooling = Callable[[torch.Tensor], torch.Tensor]
FORWARD: dict[str, tuple[Pooling, tuple[int, ...]]] = {
    "volume": (lambda x: F.avg_pool3d(x, 2), (1, 4, 4, 6)),
    "uneven volume": (lambda x: F.adaptive_avg_pool3d(x, (2, 3, 7)), (1, 5, 6, 4)),
    "fold": (lambda x: F.fold(x, (5, 6), (2, 2), dilation=2), (1, 4, 12)),
}
BACKWARD: dict[str, tuple[Pooling, tuple[int, ...]]] = {
    "signal": (lambda x: F.avg_pool1d(x, 2), (2, 7)),
    "overlapping windows": (lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), (1, 8, 8)),
    "uneven windows": (lambda x: F.adaptive_avg_pool2d(x, (9, 3)), (1, 6, 7)),
}


@pytest.mark.parametrize("name", FORWARD)
def test_results(name: str) -> None:
    pool, shape = FORWARD[name]
    x = _with_infinity(shape)
    torch.testing.assert_close(torch.compile(pool, backend=tt_torch.backend)(x), pool(x), equal_nan=True)


@pytest.mark.parametrize("name", BACKWARD)
def test_gradients(name: str) -> None:
    pool, shape = BACKWARD[name]
    gradients = []
    for run in (pool, torch.compile(pool, backend=tt_torch.backend)):
        x = torch.zeros(shape, requires_grad=True)
        y = run(x)
        y.backward(_with_infinity(y.shape))
        gradients.append(x.grad)
    expected, got = gradients
    torch.testing.assert_close(got, expected, equal_nan=True)


LARGEST: dict[str, tuple[Pooling, tuple[int, ...]]] = {
    "signal": (lambda x: F.adaptive_max_pool1d(x, 2), (1, 5)),
    "image": (lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), (1, 4, 4)),
    "uneven image": (lambda x: F.adaptive_max_pool2d(x, (2, 3)), (1, 5, 4)),
    "volume": (lambda x: F.max_pool3d(x, 2, 1, 1), (1, 2, 3, 3)),
}


@pytest.mark.parametrize("name", LARGEST)
def test_the_last_nan_of_a_window_is_its_maximum(name: str) -> None:
    pool, shape = LARGEST[name]
    gradients = []
    for run in (pool, torch.compile(pool, backend=tt_torch.backend)):
        x = torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape)
        x.view(-1)[::2] = nan
        run(x.requires_grad_()).sum().backward()
        gradients.append(x.grad)
    expected, got = gradients
    torch.testing.assert_close(got, expected)


def _with_infinity(shape: tuple[int, ...]) -> torch.Tensor:
    x = torch.linspace(-1, 1, torch.Size(shape).numel())
    x[0], x[x.numel() // 2], x[-1] = inf, -inf, nan
    return x.reshape(shape)
