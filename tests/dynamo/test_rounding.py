"""Some functions of bfloat16 and float16 are computed in float32: the result is the float32 result, rounded once.

Eager PyTorch may add up in another order, so a few results are rounded to the other neighbour.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import tt_torch
from tt_torch.config import CompilerConfig

OPTIONS = {"compiler_config": CompilerConfig(fallback="error")}
IMAGE, CHANNEL = (4, 6, 5, 3), (6,)
SPECIAL = "logit i0 i0e i1 i1e digamma gammaln erfcx log_ndtr ndtri erfinv entr sinc".split()
# Functions, and the shapes of their operands.
CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "batch_norm": (lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b), [IMAGE] + [CHANNEL] * 4),
    "group_norm": (lambda x, w, b: F.group_norm(x, 3, w, b), [IMAGE, CHANNEL, CHANNEL]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (5, 3), w, b), [IMAGE, (5, 3), (5, 3)]),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), [IMAGE]),
    "logaddexp": (torch.logaddexp, [IMAGE, IMAGE]),
    "log_softmax": (lambda x: x.log_softmax(1), [IMAGE]),
    "lerp": (torch.lerp, [IMAGE] * 3),
    "lerp to a scalar": (lambda x, y: torch.lerp(x, y, 0.7), [IMAGE, IMAGE]),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2.5, mode="bilinear"), [IMAGE]),
    "baddbmm": (lambda b, x, y: torch.baddbmm(b, x, y, beta=0.3), [(2, 30, 5), (2, 30, 40), (2, 40, 5)]),
    "addbmm": (lambda b, x, y: torch.addbmm(b, x, y, beta=0.3), [(30, 5), (2, 30, 40), (2, 40, 5)]),
    "bilinear": (F.bilinear, [(30, 5), (30, 6), (7, 5, 6)]),
    "linear": (F.linear, [(30, 40), (5, 40), (5,)]),
    "special functions": (lambda x: torch.stack([getattr(torch.special, name)(x / 2) for name in SPECIAL]), [IMAGE]),
    "conv_transpose3d": (lambda x, w, b: F.conv_transpose3d(x, w, b, 2), [(2, 3, 3, 4, 2), (3, 4, 2, 2, 2), (4,)]),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", CASES)
def test_rounded_once(name: str, dtype: torch.dtype) -> None:
    fn, shapes = CASES[name]
    inputs = [(torch.rand(shape) + 0.25).to(dtype) for shape in shapes]
    got = torch.compile(fn, backend=tt_torch.backend, options=OPTIONS, dynamic=False)(*inputs)
    expected = fn(*(x.float() for x in inputs)).to(dtype)
    assert (got == expected).float().mean() > 0.99
    torch.testing.assert_close(got, expected)


def test_functions_with_zeros_and_poles_keep_their_digits_in_a_bf16_program() -> None:
    """Near a zero or a pole, the steps of a formula cancel. The numbers are no numbers of bfloat16."""
    x = torch.tensor([1.001, 1.999, 2.004, -2.457, 1.4616, -0.5041, -3.997, 459.7457, -1118.32, 0.4991, 0.9971])

    def function(x: torch.Tensor, chances: torch.Tensor) -> torch.Tensor:
        rows = [getattr(torch.special, name)(chances) for name in ("logit", "erfinv", "ndtri", "log_ndtr")]
        return torch.cat([torch.lgamma(x), torch.digamma(x), torch.sinc(x), *rows])

    options = {"compiler_config": CompilerConfig(fallback="error", dtype="bf16")}
    chances = torch.tensor([0.4991, 0.5003, 0.9971, 0.003])
    got = torch.compile(function, backend=tt_torch.backend, options=options)(x, chances)
    torch.testing.assert_close(got, function(x, chances), rtol=2**-8, atol=1e-6)


SCALARS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "threshold": lambda x: F.threshold(x, 0.1, 5.0),
    "threshold beyond float16": lambda x: F.threshold(x, 70000.0, 0.3),
    "softshrink": lambda x: F.softshrink(x, 0.3),
    "hardshrink": lambda x: F.hardshrink(x, 0.3),
    "hardtanh": lambda x: F.hardtanh(x, -0.3, 0.1),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.3),
    "elu": lambda x: F.elu(x, 0.3),
    "softplus": lambda x: F.softplus(x, 2.05, 1.0),
    "round to tenths": lambda x: x.round(decimals=1),
    "round to hundreds": lambda x: (x * 100).round(decimals=-2),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("name", SCALARS)
def test_numbers_beside_narrow_floats_are_of_float32(name: str, dtype: torch.dtype) -> None:
    """The inputs contain the numbers themselves, rounded to the dtype: in bfloat16, 0.1 becomes 0.1001."""
    fn = SCALARS[name]
    x = torch.cat([torch.tensor([0.1, 0.3, -0.1, -0.3, 0.0, -0.0, 99, -99]), torch.linspace(-2, 2, 33)]).to(dtype)
    x.requires_grad_()
    gradient = torch.linspace(0.5, 1.5, len(x), dtype=dtype)
    got = torch.compile(fn, backend=tt_torch.backend, options=OPTIONS, dynamic=False)(x)
    tolerance = {"rtol": 1e-5, "atol": 1e-7} if dtype == torch.float32 else {"rtol": 0, "atol": 0}
    torch.testing.assert_close(got, fn(x), **tolerance)
    torch.testing.assert_close(
        torch.autograd.grad(got, x, gradient), torch.autograd.grad(fn(x), x, gradient), **tolerance
    )


@pytest.mark.parametrize("policy", ["bf16", "f32", None])
def test_subnormal_numbers_of_float16_stay(policy: str | None) -> None:
    """In a program that computes in bfloat16, these numbers are rounded to bfloat16, but they do not become zero."""
    x = torch.tensor([2.0**-24, -5 * 2.0**-24, 2.0**-14 - 2.0**-24, 1.3, 0.0])
    options = {"compiler_config": CompilerConfig(fallback="error", dtype=policy)}
    expected = (x.bfloat16().float() if policy == "bf16" else x).half()
    assert torch.equal(torch.compile(lambda x: x.half(), backend=tt_torch.backend, options=options)(x), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_the_factor_of_a_quotient_is_multiplied_first(dtype: torch.dtype) -> None:
    """Otherwise the quotient would leave the range of float32.

    Dynamo itself writes the function `torch.addcdiv` in this way.
    """
    x, a, b = (torch.tensor(v).to(dtype) for v in ([1.0, 2.0, -1.0], [3e4, 1e-3, 2.0], [6e-5, 1e-7, -3.0]))
    a, b = (a, b) if dtype is torch.float16 else (a * 1e30, b * 1e-5)

    def function(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.addcdiv(a, b, value=1e-6), *torch._foreach_addcdiv([x], [a], [b], 1e-6)

    got = torch.compile(function, backend=tt_torch.backend, options=OPTIONS)(x, a, b)
    for ours, eager in zip(got, function(x, a, b), strict=True):
        torch.testing.assert_close(ours, eager)


EVERY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "add": lambda x: torch.add(x, x.flip(0), alpha=0.1),
    "add a scalar": lambda x: torch.add(x, torch.tensor(3.0), alpha=-1.7),
    "add integers": lambda x: torch.add(x, torch.arange(len(x)), alpha=3),
    "sub": lambda x: torch.sub(x, x.flip(0), alpha=1 / 3),
    "rsub": lambda x: torch.rsub(x, x.flip(0), alpha=10),
    "trunc": lambda x: torch.div(x, 255, rounding_mode="trunc"),
    "trunc by one element": lambda x: torch.div(x, torch.tensor([51.0], dtype=x.dtype), rounding_mode="trunc"),
    "floor": lambda x: x // 0.3,
    "quotient that is not cut": lambda x: torch.div(x, 2.0, rounding_mode=None),
    "round": lambda x: x.round(decimals=1),
    "softshrink": lambda x: F.softshrink(x, 0.3),
    "threshold": lambda x: F.threshold(x, 0.1, 5.0),
    "lgamma": torch.lgamma,
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", EVERY)
def test_every_narrow_number(name: str, dtype: torch.dtype) -> None:
    """All 65,536 numbers of 16 bits give what eager PyTorch gives."""
    x = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(dtype)
    got, expected = torch.compile(EVERY[name], backend=tt_torch.backend, options=OPTIONS)(x), EVERY[name](x)
    near = {"rtol": 0.0, "atol": 0.0}
    if name == "lgamma":  # a series, which has zeros between whole numbers
        near = {"rtol": torch.finfo(dtype).eps, "atol": 1e-6}
    torch.testing.assert_close(got, expected, equal_nan=True, **near)


MANY = 70_000  # more elements than the largest number of float16
MEANS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "mean": lambda x: x.mean(),
    "a sum beyond float16": lambda x: x.flatten().mean(0) * 10,
    "along dimensions": lambda x: x.mean((0, 1), keepdim=True),
    "of another dtype": lambda x: x.float().mean(dtype=x.dtype),
    "nanmean": lambda x: x.nanmean(),
    "mse_loss": lambda x: F.mse_loss(x, x + 1),
    "mse_loss of integers": lambda x: F.mse_loss(x, torch.ones_like(x, dtype=torch.int64)),
    "l1_loss": lambda x: F.l1_loss(x, x - 1),
    "a loss with logits": lambda x: F.binary_cross_entropy_with_logits(x, x),
    "average pooling": lambda x: F.avg_pool2d(x[None], (x.shape[0], x.shape[1])),
    "a quotient by an integer": lambda x: x.flatten()[:50] / torch.tensor(MANY),
    "the sum by an integer": lambda x: x.sum() / torch.tensor(MANY),
    "a product with an integer": lambda x: x.flatten()[:50] * torch.tensor(MANY),
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", MEANS)
def test_more_elements_than_a_narrow_float_can_count(name: str, dtype: torch.dtype) -> None:
    """The number of elements is infinite in float16, and bfloat16 does not have it."""
    x = torch.rand(MANY // 50, 50).to(dtype)
    got = torch.compile(MEANS[name], backend=tt_torch.backend, options=OPTIONS, dynamic=False)(x)
    torch.testing.assert_close(got, MEANS[name](x), rtol=2 * torch.finfo(dtype).eps, atol=1e-7)


def test_gradients_of_a_layer_norm_of_more_elements_than_float16_can_count() -> None:
    def gradient(norm: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        x = (torch.arange(float(MANY)) % 2 * 2 - 1).half().requires_grad_()
        (norm(x).float() * torch.linspace(-1, 1, MANY)).sum().backward()
        assert x.grad is not None
        return x.grad

    def norm(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (MANY,))

    got = gradient(torch.compile(norm, backend=tt_torch.backend, options=OPTIONS))
    torch.testing.assert_close(got, gradient(norm), rtol=2**-8, atol=1e-5)  # the deviation is rounded to float16


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_samples_of_a_volume_of_bfloat16_are_rounded_as_in_eager(padding, align):
    """Eager's kernel rounds each product of a share, and multiplies those of the last dimension first."""
    x, grid = torch.randn(2, 3, 5, 20, 20).bfloat16(), (torch.rand(2, 12, 11, 10, 3) * 3 - 1.5).bfloat16()

    def sample(x, grid):
        return F.grid_sample(x, grid, padding_mode=padding, align_corners=align)

    found = torch.compile(sample, backend=tt_torch.backend, options=OPTIONS)(x, grid)
    assert torch.equal(found, sample(x, grid))
