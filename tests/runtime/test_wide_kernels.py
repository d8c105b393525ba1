"""Convolutions of bfloat16 whose kernels are wide and have few channels. Eager PyTorch is no reference for them: on
processors with AMX, its sums are wrong. Each expected result is computed in float32, rounded once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import tt_torch

CASES: dict[str, tuple[Callable[..., torch.Tensor], tuple[int, ...], tuple[int, ...]]] = {
    "conv1d": (F.conv1d, (2, 8, 40), (8, 8, 16)),
    "conv2d": (F.conv2d, (2, 8, 12, 12), (8, 8, 3, 8)),
    "conv2d of a result": (lambda x, w: F.conv2d(x, w * 2).relu(), (2, 4, 18, 18), (16, 4, 16, 16)),
    "conv2d of groups": (lambda x, w: F.conv2d(x, w, groups=2), (2, 16, 9, 20), (8, 8, 2, 12)),
    "conv3d": (F.conv3d, (2, 8, 3, 3, 20), (8, 8, 2, 2, 8)),
}


@pytest.mark.parametrize("resident", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_sums_are_those_of_float32(name: str, resident: bool) -> None:
    function, shape, kernel = CASES[name]
    x, weight = torch.randn(shape).bfloat16(), torch.nn.Parameter(torch.randn(kernel).bfloat16(), requires_grad=False)
    expected = function(x.float(), weight.float()).bfloat16()
    if resident:  # a weight that the device keeps is packed
        model = torch.nn.ParameterList([weight])
        run = torch.compile(lambda x: function(x, model[0]), backend=tt_torch.backend)
        got = run(x)
    else:
        got = torch.compile(function, backend=tt_torch.backend)(x, weight)
    torch.testing.assert_close(got, expected, rtol=2**-7, atol=1e-2)


def test_gradients_of_a_convolution() -> None:
    """The gradient of a weight is a convolution whose kernel is the gradient of the result."""
    gradients = []
    for dtype in (torch.float32, torch.bfloat16):
        torch.manual_seed(0)
        model, x = (
            torch.nn.Conv2d(3, 8, 3, padding=1).bfloat16().to(dtype),
            torch.randn(8, 3, 8, 8).bfloat16().to(dtype),
        )
        run = model if dtype == torch.float32 else torch.compile(model, backend=tt_torch.backend)
        run(x).square().sum().backward()
        gradients.append(model.weight.grad.float())
    torch.testing.assert_close(gradients[1], gradients[0], rtol=2e-2, atol=2.0)
