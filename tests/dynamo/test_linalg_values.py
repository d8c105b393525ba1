"""Infinities and signs of zeros in the factorizations that are unrolled, as in LAPACK."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, inf, nan

import tt_torch
from tt_torch.dynamo.decompositions import linalg, qr

PACKED = torch.tensor([[1.0, inf, 2.0], [-0.5, 3.0, inf], [inf, 0.25, 1.0], [0.5, 2.0, -1.5]])
TAU = torch.tensor([1.5, 0.0, 0.75])
LU, PIVOTS = torch.tensor([[-1.5, 2.0], [0.0, 4.0]]), torch.tensor([2, 2], dtype=torch.int32)
SOLVED = torch.tensor([[-0.0, 1.0], [0.0, -0.0]])
FACTORED = torch.tensor([[3.0, 0.0, -1.0], [-8.0, -7.0, 0.0], [0.0, 2.0, -5.0]])


@pytest.mark.parametrize(
    "function",
    [
        lambda: torch.linalg.householder_product(PACKED, TAU),
        lambda: torch.linalg.householder_product(PACKED, TAU[:2]),
        lambda: torch.ormqr(PACKED, TAU, torch.ones(4, 2), True, True),
        lambda: torch.ormqr(PACKED, TAU, torch.ones(2, 4), False, False),
        lambda: torch.linalg.lu_solve(LU, PIVOTS, SOLVED),
        lambda: torch.linalg.lu(FACTORED)[1],
        lambda: torch.linalg.qr(torch.tensor([[1.5, 3.7], [0.0, 3.7]]))[0],
    ],
)
def test_results(function: Callable[[], Tensor]) -> None:
    expected, got = function(), torch.compile(function, backend=tt_torch.backend)()
    torch.testing.assert_close(got, expected, equal_nan=True)
    assert torch.equal(got.signbit() & (got == 0), expected.signbit() & (expected == 0))


@pytest.mark.parametrize("seed", range(40))
def test_products_of_reflections_beside_infinite_numbers(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    columns, more, steps = (int(torch.randint(n, (), generator=draw)) for n in (5, 3, 5))
    packed = torch.randn(2, columns + more, columns, generator=draw)
    packed[torch.rand(packed.shape, generator=draw) < 0.1] = inf
    tau = torch.randn(2, min(steps, columns), generator=draw)
    packed_steps = packed[..., : tau.shape[-1]]
    torch.testing.assert_close(
        qr.householder_product(packed, tau), torch.linalg.householder_product(packed, tau), equal_nan=True
    )
    other = torch.randn(2, columns + more, 3, generator=draw)
    for left, transpose in ((True, True), (True, False), (False, True), (False, False)):
        given = (packed_steps, tau, other if left else other.mT, left, transpose)
        torch.testing.assert_close(qr.ormqr(*given), torch.ormqr(*given), equal_nan=True)


@pytest.mark.parametrize("seed", range(40))
def test_inverses_beside_numbers_that_are_not_finite(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    size, upper = int(torch.randint(7, (), generator=draw)), seed % 2 == 1
    factor = torch.randn(2, size, size, generator=draw) + 3 * torch.eye(size)
    for number in (nan, inf, -inf):
        factor[torch.rand(factor.shape, generator=draw) < 0.04] = number
    got = linalg.cholesky_inverse(factor, upper)
    torch.testing.assert_close(got, torch.cholesky_inverse(factor, upper), equal_nan=True, rtol=1e-4, atol=1e-4)


def test_the_inverse_of_a_singular_factor() -> None:
    compiled = torch.compile(torch.cholesky_inverse, backend=tt_torch.backend)
    factor = torch.tensor([[1.0, 0.0], [2.0, 3.0]])
    torch.testing.assert_close(compiled(factor), torch.cholesky_inverse(factor))
    factor[1, 1] = 0
    with pytest.raises(torch.linalg.LinAlgError, match="The diagonal element 2 is zero"):
        compiled(factor)
