"""Gradients for which PyTorch makes tensors without memory."""

import pytest
import torch

import tt_torch


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("op", [torch.sgn, torch.sign, torch.floor, lambda x: x.sgn() * x])
def test_gradients_of_zero(op, shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    given = [x.clone().requires_grad_() for _ in range(2)]
    results = [f(each).sum() for f, each in zip((op, torch.compile(op, backend=tt_torch.backend)), given, strict=True)]
    for result in results:
        result.backward()
    assert torch.equal(given[0].grad, given[1].grad) and torch.equal(*results)
