"""Complex numbers as pairs of real tensors: the op table tests the ops, and this file tests the pairs themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import tt_torch
from tt_torch.dynamo.complex_pairs.pairs import Pair, pair


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("x", [2, 0.1, 0.1 + 0.3j, torch.tensor([1, 2])], ids=str)
def test_numbers_and_real_tensors_take_the_dtype_of_a_pair(x: complex | torch.Tensor, dtype: torch.dtype) -> None:
    made = pair(x, Pair(torch.zeros(2, dtype=dtype), torch.zeros(2, dtype=dtype)))
    expected = torch.as_tensor(x).to(torch.complex128)
    assert made.re.dtype is made.im.dtype is dtype
    torch.testing.assert_close(torch.complex(made.re.double(), made.im.double()), expected, rtol=1e-3, atol=0)


WITH_GRADIENTS: dict[str, Callable[..., torch.Tensor]] = {
    "times a number": lambda z, w, x: z * 2j,
    "a number by": lambda z, w, x: (1 + 2j) / z,
    "real times a number": lambda z, w, x: x * 2j,
    "a factor": lambda z, w, x: torch.add(z, w, alpha=1 - 2j),
    "products": lambda z, w, x: torch.addmm(z[:, :3], z, w.mT, alpha=2j, beta=1j) @ w.conj(),
    "powers": lambda z, w, x: z ** (1 + 3j) + (1 + 2j) ** w,
    "functions": lambda z, w, x: z.exp() * w.tanh() / z.sqrt(),
    "parts": lambda z, w, x: z.abs() * w.angle() + z.imag * w.real,
    "choices": lambda z, w, x: torch.where(x > 0, z, w).masked_fill(x > 1, 2j),
    "reductions": lambda z, w, x: z.cumprod(1).sum(0) * w.prod(1, keepdim=True),
    "transforms": lambda z, w, x: torch.fft.fft(z) * torch.fft.ifft(x),
}


@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_gradients(name: str) -> None:
    generator = torch.Generator().manual_seed(3)
    a, b, c, d, x = torch.randn(5, 3, 4, generator=generator)
    results = []
    for run in (WITH_GRADIENTS[name], torch.compile(WITH_GRADIENTS[name], backend=tt_torch.backend)):
        inputs = [v.requires_grad_() for v in (torch.complex(a, b), torch.complex(c, d), x.clone())]
        y = run(*inputs)
        parts = torch.view_as_real(y) if y.is_complex() else y
        (parts * torch.arange(parts.numel()).view(parts.shape)).sum().backward()
        results.append([y.detach(), *(v.grad for v in inputs)])
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [4, 8, 12, 16])
def test_roots_that_are_zero_are_exact(n: int) -> None:
    """A large element does not appear in the parts of the results that do not depend on it."""
    x = torch.zeros(n)
    x[0], x[1] = 1.0, 1e19
    got = torch.compile(lambda x: torch.view_as_real(torch.fft.rfft(x)), backend=tt_torch.backend)(x)
    assert got[n // 4, 0] == 1 and got[n // 2, 1] == 0
