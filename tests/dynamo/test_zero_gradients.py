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


@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 5, 3, 4)])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_only_the_target_has_a_gradient_of_a_loss(shape, reduction):
    """The other gradients are 0.0, even if an incoming gradient is negative or infinite. Ignored targets have none."""
    x = torch.randn(shape).requires_grad_()
    target = torch.randint(0, 5, shape[:1] + shape[2:] if len(shape) > 1 else ())
    if target.dim():
        target[0] = -100
    weight = torch.rand(5)

    def loss(x, target):
        return torch.nn.functional.nll_loss(x, target, weight, reduction=reduction)

    expected, got = loss(x, target), torch.compile(loss, backend=tt_torch.backend)(x, target)
    incoming = -torch.rand(expected.shape)
    incoming.flatten()[-1] = -torch.inf
    (a,), (b,) = torch.autograd.grad(expected, x, incoming), torch.autograd.grad(got, x, incoming)
    torch.testing.assert_close(b, a)
    assert torch.equal(b.signbit(), a.signbit())
