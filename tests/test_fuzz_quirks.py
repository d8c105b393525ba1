"""The fuzzer knows programs that eager PyTorch does not define, and compares nothing of them."""

from __future__ import annotations

import pytest
import torch
from torch import inf, nan

from tt_torch.fuzz.quirks import undefined


@pytest.mark.parametrize(
    ("text", "undefined_for", "defined_for"),
    [
        ("v0 % v1", torch.tensor([1e-40]), torch.tensor([1.0, 0.0])),
        ("torch.nn.functional.gelu(v0)", torch.tensor([inf]), torch.tensor([1e30])),
        ("torch.nn.functional.gelu(v0)", torch.tensor([3e38]), torch.tensor([1e30])),
        ("torch.nn.functional.gelu(v0, approximate='tanh')", torch.tensor([-7.0]), torch.tensor([-4.0, 1e30])),
        ("torch.nn.functional.glu(v1, -1)", torch.tensor([-89.0]), torch.tensor([-87.0, inf])),
        ("v1.sinc()", torch.tensor([4]), torch.tensor([0.0, 0.3])),
        ("torch.nn.functional.hardswish(v0)", torch.tensor([3e38]), torch.tensor([1e30])),
        ("(torch.complex(v0, v1) * torch.complex(v1, v0)).imag", torch.tensor([inf]), torch.tensor([1e30])),
        ("v1.std()", torch.tensor([2e19]), torch.tensor([1e17, inf])),
        ("torch.cdist(v0, v1)", torch.ones(0, 5), torch.ones(1, 5)),
        ("torch.complex(v0, v1).abs()", torch.tensor([1e-40]), torch.tensor([1e-30, inf])),
        ("v0 @ v1", torch.full((2, 2), 3e38), torch.full((2, 2), inf)),
        ("torch.linalg.qr(v1)", torch.tensor([[nan], [1.0]]), torch.ones(2, 1)),
        ("v0.sum()", torch.tensor([3e38]), torch.tensor([1e30])),
        ("torch.cdist(v0, v0)", torch.ones(26, 2), torch.ones(25, 2)),
        ("torch.nn.functional.scaled_dot_product_attention(v0, v0, v1)", torch.tensor([nan]), torch.ones(2)),
        ("torch.nn.functional.elu(v1, 0.5)", torch.tensor([nan]), torch.tensor([inf])),
        ("torch.nn.functional.max_pool1d(v1, 2)", torch.ones(2, 3, 4).mT, torch.ones(2, 3, 4)),
        ("torch.copysign(v0, v1)", torch.tensor([nan]), torch.tensor([inf])),
    ],
)
def test_programs_that_eager_does_not_define(text: str, undefined_for: torch.Tensor, defined_for: torch.Tensor) -> None:
    assert undefined(text, [torch.ones(2), undefined_for])
    assert not undefined(text, [torch.full((2,), 0.5), defined_for])
    assert not undefined("v0 + v1", [torch.ones(2), undefined_for])


def test_factors_that_eager_does_not_define() -> None:
    x = [torch.ones(2)]
    assert undefined("torch.fmod(v0, 1e-45)", x) and not undefined("torch.fmod(v0, 1e-38)", x)
    assert undefined("v0.sub(v0, alpha=-9223372036854775808)", x)
    assert undefined("torch.addmm(v0, v0, v0, alpha=inf)", x) and undefined("torch.addmv(v0, v0, v0, beta=1e-45)", x)
    assert undefined("torch.addcmul(v0, v0, v0, value=1e-45)", x)
    assert undefined("torch.addmm(v0, v0, v0, alpha=-0.0)", [torch.tensor([inf])])
    assert not undefined("torch.addmm(v0, v0, v0, alpha=-0.0)", x)
    assert not undefined("torch.addmm(v0, v0, v0, alpha=0.5)", [torch.tensor([inf])])
    assert undefined("torch.ldexp(v0, v1)", [*x, torch.tensor([2**40])])
    assert not undefined("torch.ldexp(v0, v1)", [*x, torch.tensor([2**30])])
    assert not undefined("v0.sub(v0, alpha=-2147483648)", x)
    assert undefined("v0.masked_scatter_(v1, v0)", x) and not undefined("v0.masked_scatter_(v1, v2)", x)
    assert not undefined("v0.masked_scatter(v1, v0)", x)
    assert undefined("v0.masked_scatter_(v1, v1)", [*x, x[0][:]]) and not undefined("v0.add_(v1)", [*x, x[0][:]])
    assert undefined("torch.nn.functional.hardtanh(v0, -1, nan)", x)
    assert not undefined("torch.nn.functional.hardtanh(v0, -1, inf)", x)
    assert undefined("torch.nn.functional.celu(v0, -1e+300)", x) and not undefined("torch.celu(v0, -1e+30)", x)
    assert not undefined("torch.nn.functional.leaky_relu(v0, 0.5)", [torch.tensor([nan])])


def test_which_of_equal_elements_gets_the_gradient_is_not_defined() -> None:
    equal, apart = torch.tensor([nan, nan, 1.0]).requires_grad_(), torch.tensor([0.0, nan, 1.0]).requires_grad_()
    assert undefined("v0.kthvalue(1)[0]", [equal]) and not undefined("v0.kthvalue(1)[0]", [equal.detach()])
    assert not undefined("v0.kthvalue(1)[0]", [apart + 2])
