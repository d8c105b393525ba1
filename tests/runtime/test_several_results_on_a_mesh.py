"""Ops with several results in a program for a mesh: each chip gets its own results, not the last chip's."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tt_torch

OPTIONS = {"mesh_shape": (1, 4), "automatic_parallelization": True, "fallback": "error"}


def pooled(x):
    values, places = F.max_pool2d(x, 2, return_indices=True)
    return values, places.float()


PROGRAMS = {
    "sort": (lambda x: [y.float() for y in x.sort(-1)], (8, 16)),
    "topk": (lambda x: [y.float() for y in x.topk(3)], (8, 16)),
    "largest": (lambda x: [y.float() for y in x.max(1)], (8, 16)),
    "pooling": (pooled, (8, 3, 6, 6)),
    "pooling in bfloat16": (lambda x: pooled(x.bfloat16()), (8, 3, 6, 6)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_chip_has_its_own_results(name):
    function, shape = PROGRAMS[name]
    x = torch.randperm(torch.Size(shape).numel()).reshape(shape).float()
    for found, expected in zip(torch.compile(function, backend="tt", options=OPTIONS)(x), function(x), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_gradients_of_pooling_in_bfloat16():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)).bfloat16()
    x, gradients = torch.randn(8, 3, 8, 8).bfloat16(), []
    for options in ({}, OPTIONS):
        model.zero_grad()
        torch.compile(model, backend="tt", dynamic=False, options=options)(x).float().square().sum().backward()
        gradients.append([p.grad.float() for p in model.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=5e-2, atol=1.0)


def test_a_kernel_of_the_user_with_two_results():
    @torch.library.custom_op("mesh_test::both", mutates_args=())
    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, x * 2

    both.register_fake(lambda x: (torch.empty_like(x), torch.empty_like(x)))
    tt_torch.kernel(torch.ops.mesh_test.both)(lambda x: (x + 1, x * 2))
    compiled = torch.compile(lambda x: torch.ops.mesh_test.both(x + 1), backend="tt", options=OPTIONS)
    x = torch.arange(32.0).reshape(8, 4)
    for found, expected in zip(compiled(x), (x + 2, (x + 1) * 2), strict=True):
        assert torch.equal(found, expected)
