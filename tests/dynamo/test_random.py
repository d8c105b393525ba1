"""Random numbers on the device: their distributions, and their repetition under a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch.utils.checkpoint import checkpoint

import tt_torch
from tt_torch.config import CompileDepth, CompilerConfig
from tt_torch.dynamo.decompositions import random

SIZE = (64, 257)
WEIGHTS = torch.tensor([0.1, 0.2, 0.7])


def compiled(function: Callable, depth: CompileDepth = CompileDepth.EXECUTE) -> Callable:
    config = CompilerConfig(fallback="error", compile_depth=depth)
    return torch.compile(function, backend=tt_torch.backend, fullgraph=True, options={"compiler_config": config})


def seeded(function: Callable[[], torch.Tensor], seed: int = 4) -> torch.Tensor:
    torch.manual_seed(seed)
    return function()


CONTINUOUS = {
    "rand": (lambda: torch.rand(SIZE), stats.uniform()),
    "rand_like": (lambda: torch.rand_like(torch.zeros(SIZE)), stats.uniform()),
    "randn": (lambda: torch.randn(SIZE), stats.norm()),
    "randn_like": (lambda: torch.randn_like(torch.zeros(SIZE)), stats.norm()),
    "uniform_": (lambda: torch.empty(SIZE).uniform_(-1, 3), stats.uniform(-1, 4)),
    "normal_": (lambda: torch.empty(SIZE).normal_(1, 2), stats.norm(1, 2)),
    "normal": (lambda: torch.normal(torch.ones(SIZE), torch.full(SIZE, 2.0)), stats.norm(1, 2)),
    "log_normal_": (lambda: torch.empty(SIZE).log_normal_(0, 0.5), stats.lognorm(0.5)),
    "exponential_": (lambda: torch.empty(SIZE).exponential_(2), stats.expon(scale=0.5)),
    "cauchy_": (lambda: torch.empty(SIZE).cauchy_(1, 2), stats.cauchy(1, 2)),
}
DISCRETE = {
    "randint": (lambda: torch.randint(-2, 3, SIZE), stats.randint(-2, 3)),
    "randint_like": (lambda: torch.randint_like(torch.zeros(SIZE), 0, 4), stats.randint(0, 4)),
    "bernoulli": (lambda: torch.bernoulli(torch.full(SIZE, 0.3)), stats.bernoulli(0.3)),
    "bernoulli_": (lambda: torch.empty(SIZE).bernoulli_(0.3), stats.bernoulli(0.3)),
    "bernoulli_tensor": (lambda: torch.empty(SIZE).bernoulli_(torch.full(SIZE, 0.3)), stats.bernoulli(0.3)),
    "geometric_": (lambda: torch.empty(SIZE).geometric_(0.4), stats.geom(0.4)),
    "dropout": (lambda: F.dropout(torch.full(SIZE, 0.5), 0.5), stats.bernoulli(0.5)),
    "multinomial": (
        lambda: torch.multinomial(WEIGHTS, 9000, replacement=True),
        stats.rv_discrete(values=(range(3), WEIGHTS.double().numpy() / WEIGHTS.double().sum().item())),
    ),
}


def check_continuous(got: np.ndarray, expected: Any) -> None:
    assert stats.kstest(got, expected.cdf).pvalue > 1e-3


def check_discrete(got: np.ndarray, expected: Any) -> None:
    """A chi-squared test. A value that is expected at least five times counts alone, and all others count together."""
    kinds = np.arange(got.min(), got.max() + 1)
    assert (expected.pmf(np.unique(got)) > 0).all(), "a value that the distribution does not have"
    frequent = kinds[expected.pmf(kinds) * got.size >= 5]
    observed, wanted = [np.sum(got == k) for k in frequent], list(expected.pmf(frequent) * got.size)
    if got.size - sum(wanted) > 1:
        observed, wanted = [*observed, got.size - sum(observed)], [*wanted, got.size - sum(wanted)]
    assert stats.chisquare(observed, np.array(wanted) / sum(wanted) * sum(observed)).pvalue > 1e-3


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_distribution_and_seed(name: str) -> None:
    """A seed repeats the numbers, and the captured graph computes the same numbers on the CPU."""
    function, expected = (CONTINUOUS | DISCRETE)[name]
    run = compiled(function)
    first, second, again = seeded(run), run(), seeded(run)
    assert torch.equal(first, again) and not torch.equal(first, second)
    eager = function()
    assert first.dtype == eager.dtype and first.shape == eager.shape
    check = check_continuous if name in CONTINUOUS else check_discrete
    check(first.double().flatten().numpy(), expected)
    torch._dynamo.reset()
    on_cpu = seeded(compiled(function, CompileDepth.TORCH_FX))
    torch.testing.assert_close(first, on_cpu, rtol=1e-5, atol=1e-5)


def test_draws_of_a_program_differ() -> None:
    first, second = compiled(lambda: (torch.rand(SIZE), torch.rand(SIZE)))()
    correlation = np.corrcoef(first.flatten(), second.flatten())[0, 1]
    assert abs(correlation) * first.numel() ** 0.5 < 4


def test_multinomial_without_replacement() -> None:
    got = compiled(lambda: torch.multinomial(torch.ones(50, 6), 4))()
    assert got.shape == (50, 4) and all(len(set(row)) == 4 for row in got.tolist())
    assert got.min() == 0 and got.max() == 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_multinomial_of_many_categories(dtype: torch.dtype) -> None:
    """Exponential times for all draws and categories would take 6 GB. Categories with the weight 0 are never drawn."""
    torch.manual_seed(0)
    weights = torch.rand(5, 3000, dtype=dtype) + 0.5
    weights[:, ::3] = 0
    weights[0, 1000:] = 0
    weights[1, :2000] = 0
    weights[2] = 0
    weights[2, 1234] = 7
    got = compiled(lambda: torch.multinomial(weights, 100_000, replacement=True))()
    assert (got.shape, got.dtype) == ((5, 100_000), torch.int64)
    assert (weights.gather(1, got) > 0).all()
    for row, chosen in zip(weights, got, strict=True):
        expected = row / row.sum() * chosen.numel()
        counts = torch.bincount(chosen, minlength=3000)
        deviation = ((counts - expected).square() / expected.clamp(min=1e-9))[row > 0].sum()  # chi-squared
        freedom = max(int((row > 0).sum()) - 1, 0)
        assert abs(deviation - freedom) <= 6 * (2 * freedom) ** 0.5


def test_randperm() -> None:
    run = compiled(lambda: torch.randperm(50))
    first, second = run(), run()
    assert sorted(first.tolist()) == list(range(50)) and first.dtype == torch.int64 and not torch.equal(first, second)


def test_rrelu() -> None:
    x = torch.randn(40, 30, requires_grad=True)
    y = compiled(lambda x: F.rrelu(x, 0.1, 0.4, training=True))(x)
    (grad,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(grad, y / x)
    slopes = grad[x < 0]
    assert (grad[x > 0] == 1).all() and stats.kstest(slopes.numpy(), stats.uniform(0.1, 0.3).cdf).pvalue > 1e-3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_types(dtype: torch.dtype) -> None:
    got = compiled(lambda: torch.rand(SIZE, dtype=dtype))()
    assert got.dtype == dtype and got.min() >= 0 and got.max() < 1 and abs(got.double().mean() - 0.5) < 0.02


def test_empty_and_single() -> None:
    empty, single = compiled(lambda: (torch.rand(0, 3), torch.rand(())))()
    assert empty.shape == (0, 3) and single.shape == () and 0 <= single < 1


# --- the generator itself, on the CPU


def test_bits_are_balanced_and_independent() -> None:
    """Each bit is set half of the time, and uniform numbers do not depend on their neighbours, for many seeds."""
    bits = torch.stack([random._bits((1 << 14,)) for _ in range(32)])
    draws = bits.numel()
    for position in range(32):
        share = (bits >> position & 1).double().mean()
        assert abs(share - 0.5) * 2 * draws**0.5 < 4.5, position
    uniform = random._unit(bits).double().numpy()
    for row, lag in [(0, 1), (1, 2), (2, 64), (3, 1000)]:
        correlation = np.corrcoef(uniform[row, :-lag], uniform[row, lag:])[0, 1]
        assert abs(correlation) * (1 << 7) < 4, lag
    pvalues = [stats.kstest(row, "uniform").pvalue for row in uniform]
    assert stats.kstest(pvalues, "uniform").pvalue > 1e-3


def test_close_seeds_give_unrelated_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = []
    for seed in ([5, 9], [5, 10], [6, 8]):
        monkeypatch.setattr(random, "draw_seeds", lambda *_, seed=seed: torch.tensor([seed], dtype=torch.int32))
        numbers.append(random._unit(random._bits((1 << 14,))).double().numpy())
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        for lag in (0, 1):
            correlation = np.corrcoef(numbers[i][lag:], numbers[j][: len(numbers[j]) - lag])[0, 1]
            assert abs(correlation) * (1 << 7) < 4, (i, j, lag)


# --- gradients


@pytest.mark.parametrize("p", [0.5, 1.0])
def test_dropped_elements_are_products_with_zero(p: float) -> None:
    """A dropped infinity is NaN and a dropped negative number -0, as in eager PyTorch."""
    x = torch.tensor([1.0, -1.0, torch.inf, torch.nan]).repeat(32, 1)
    y = seeded(lambda: compiled(lambda x: F.dropout(x, p))(x))
    for i, (kept, dropped) in enumerate([(1, 0.0), (-1, -0.0), (torch.inf, torch.nan), (torch.nan, torch.nan)]):
        expected = {str(float(dropped))} | ({str(float(kept / (1 - p)))} if p < 1 else set())
        assert set(map(str, y[:, i].tolist())) == expected


def test_backward_uses_the_mask_of_forward() -> None:
    x = torch.randn(20, 30, requires_grad=True)
    run = compiled(lambda x: F.dropout(x * 2, 0.4))
    for _ in range(2):
        y = run(x)
        (grad,) = torch.autograd.grad(y.sum(), x)
        torch.testing.assert_close(grad, torch.where(y != 0, 2 / 0.6, 0.0))


def test_checkpointing_computes_the_same_mask_anew() -> None:
    weight = torch.randn(30, 30, requires_grad=True)

    def block(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(torch.tanh(x @ weight), 0.5)

    results = []
    for function in (
        lambda x: block(x).square().sum(),
        lambda x: checkpoint(block, x, use_reentrant=False).square().sum(),
    ):
        torch._dynamo.reset()
        x = seeded(lambda: torch.randn(4, 30)).requires_grad_()
        run = compiled(function)
        loss = seeded(lambda run=run, x=x: run(x))
        results.append((loss.detach(), *torch.autograd.grad(loss, (x, weight))))
    for plain, anew in zip(*results, strict=True):
        torch.testing.assert_close(anew, plain, rtol=1e-4, atol=1e-5)
