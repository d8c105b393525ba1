"""Random ops in the form that the device computes, run on the CPU: types, shapes, quantiles and exact bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tt_torch.dynamo import composites  # noqa: F401  (defines the shifts)
from tt_torch.dynamo.decompositions import DECOMPOSITIONS
from tt_torch.dynamo.decompositions import random as ours

aten = torch.ops.aten
SIZE = (61, 300)
P, SHIFT = torch.linspace(0.1, 0.8, 300).expand(SIZE).contiguous(), torch.linspace(-5, 5, 300).expand(SIZE).contiguous()
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
QUANTILES = torch.tensor([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95], dtype=torch.float64)
# Ops, and arguments after the size or the tensor to fill.
OF_A_SIZE = {aten.rand.default: [()], aten.randn.default: [()]}
OF_A_TENSOR: dict[Any, list[tuple[Any, ...]]] = {
    aten.rand_like.default: [()],
    aten.randn_like.default: [()],
    aten.uniform.default: [(), (-3.0, 5.0)],
    aten.normal_functional.default: [(), (3.0, 0.5)],
    aten.log_normal.default: [(), (0.5, 0.25)],
    aten.exponential.default: [(), (4.0,)],
    aten.geometric.default: [(0.3,), (0.9,)],
    aten.cauchy.default: [(), (2.0, 0.5)],
    aten.bernoulli.p: [(0.3,), (0.0,), (1.0,)],
    aten.bernoulli.Tensor: [(P,)],
}
FILLS = [(op, arguments) for op, rows in OF_A_TENSOR.items() for arguments in rows]
# Whole calls; the numbers of each column have one distribution.
CALLS: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (aten.bernoulli.default, (P,), {}),
    (aten.randint.default, (7, SIZE), {}),
    (aten.randint.low, (-3, 100, SIZE), {}),
    (aten.randint.low, (-3, 100, SIZE), {"dtype": torch.int32}),
    (aten.randint.default, (2**31, SIZE), {"dtype": torch.float64}),
    (aten.randint_like.default, (P, 5), {}),
    (aten.randint_like.default, (P, 5), {"dtype": torch.uint8}),
    (aten.randint_like.low_dtype, (P, 2, 9), {}),
    (aten.randint_like.low_dtype, (P, -9, 9), {"dtype": torch.int16}),
    (aten.randperm.default, (20000,), {}),
    (aten.randperm.default, (500,), {"dtype": torch.int32}),
    (aten.normal.float_float, (3.0, 0.5, SIZE), {}),
    (aten.normal.float_float, (3.0, 0.5, SIZE), {"dtype": torch.bfloat16}),
    (aten.normal.float_float, (3.0, 0.5, SIZE), {"dtype": torch.float64}),
    (aten.normal.Tensor_float, (SHIFT, 2.0), {}),
    (aten.normal.Tensor_float, (SHIFT.double(),), {}),
    (aten.normal.float_Tensor, (1.0, P), {}),
    (aten.normal.Tensor_Tensor, (SHIFT[:1], P[:, :1]), {}),
    (aten.normal.Tensor_float, (torch.complex(SHIFT, torch.full(SIZE, 7.0)), 2.0), {}),
    (aten.normal_functional.default, (torch.zeros(SIZE, dtype=torch.complex64), 3.0, 0.5), {}),
    (aten.rand.default, (SIZE,), {"dtype": torch.complex64}),
    (aten.randn.default, (SIZE,), {"dtype": torch.complex128}),
    (aten.rand_like.default, (torch.complex(P, P),), {}),
    (aten.randn_like.default, (P,), {"dtype": torch.complex64}),
    (aten.multinomial.default, (torch.tensor([0.1, 0.2, 0.7]), 5000, True), {}),
    (aten.multinomial.default, (torch.tensor([0.1, 0.2, 0.7]).expand(5000, 3), 1), {}),
    (aten.multinomial.default, (torch.tensor([0.1, 0.2, 0.7]).expand(5000, 3), 2), {}),
]


def check(op: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Our result has the dtype and the shape of PyTorch's result, and nearly the same quantiles; of complex numbers,
    in each part, and the parts are not correlated.

    The quantiles of a discrete distribution are equal, unless a step of it lies near one of them.
    """
    torch.manual_seed(3)
    found, expected = DECOMPOSITIONS[op](*arguments, **options), op(*arguments, **options)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    if found.is_complex():
        assert torch.corrcoef(torch.view_as_real(found).flatten(0, -2).T.float())[0, 1].abs() < 0.05
    for part in ("real", "imag") if found.is_complex() else ("real",):
        have, want = (torch.quantile(getattr(v, part).double().flatten(), QUANTILES) for v in (found, expected))
        spread = want[-2] - want[1]
        assert ((have - want).abs() <= 0.1 * spread + 0.1 * want.abs()).all(), (have, want)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", OF_A_SIZE, ids=str)
def test_of_a_size(op: Any, dtype: torch.dtype) -> None:
    check(op, (SIZE,), {"dtype": dtype})


@pytest.mark.parametrize("op", OF_A_SIZE, ids=str)
def test_the_default_type(op: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check(op, (SIZE,), {})
    torch.set_default_dtype(torch.float64)
    try:
        check(op, (SIZE,), {})
        check(aten.normal.float_float, (3.0, 0.5, SIZE), {})
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("op", "arguments"), FILLS)
def test_that_fills_a_tensor(op: Any, arguments: tuple[Any, ...], dtype: torch.dtype) -> None:
    check(op, (torch.zeros(SIZE, dtype=dtype), *arguments), {})


@pytest.mark.parametrize("op", [aten.rand_like.default, aten.randn_like.default], ids=str)
def test_like_a_tensor_of_another_type(op: Any) -> None:
    check(op, (torch.zeros(SIZE),), {"dtype": torch.float64})


@pytest.mark.parametrize(("op", "arguments", "options"), CALLS)
def test_calls(op: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    check(op, arguments, options)


@pytest.mark.parametrize("bounds", [(-(2**31), 1), (0, 2**31 + 1), (-(2**40), -(2**40) + 5), (2**31 - 3, 2**31 + 1)])
def test_ranges_that_the_device_does_not_have(bounds: tuple[int, int]) -> None:
    assert DECOMPOSITIONS[aten.randint.low](*bounds, (3,)) is NotImplemented


@pytest.mark.parametrize("bounds", [(-(2**31), 0), (0, 2**31), (2**31 - 3, 2**31), (-(2**31), -(2**31) + 1)])
def test_ranges_at_the_limits(bounds: tuple[int, int]) -> None:
    drawn = DECOMPOSITIONS[aten.randint.low](*bounds, (1000,))
    assert bounds[0] <= drawn.min() and drawn.max() < bounds[1]


def test_a_permutation_has_each_number_once() -> None:
    assert sorted(DECOMPOSITIONS[aten.randperm.default](700).tolist()) == list(range(700))


def test_uniform_numbers_are_in_range_and_in_steps_of_their_type() -> None:
    for dtype, bits in ((torch.bfloat16, 8), (torch.float16, 11), (torch.float32, 24), (torch.float64, 24)):
        x = DECOMPOSITIONS[aten.rand.default](SIZE, dtype=dtype).double() * 2**bits
        assert (x == x.floor()).all() and x.min() >= 0 and x.max() < 2**bits
    extreme = torch.tensor([0, -1, 2**31 - 1, -(2**31)], dtype=torch.int32)
    assert ours._unit(extreme).tolist() == [0, 1 - 2**-24, 0.5 - 2**-24, 0.5]
    assert ours._positive(extreme).tolist() == [2**-24, 1, 0.5, 0.5 + 2**-24]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("p", "train"), [(0.3, True), (0.9, None), (0.0, True), (1.0, True), (0.3, False)])
def test_dropout(p: float, train: bool | None, dtype: torch.dtype) -> None:
    """The factors equal the factors of eager PyTorch, and are nearly as frequent."""
    x = torch.ones(SIZE, dtype=dtype)
    (y, kept), (y2, kept2) = (
        op(x, p, train) for op in (DECOMPOSITIONS[aten.native_dropout.default], aten.native_dropout)
    )
    assert (y.dtype, kept.dtype, kept.shape) == (y2.dtype, kept2.dtype, kept2.shape)
    assert torch.equal(y != 0, kept) or p == 0
    torch.testing.assert_close(y.max(), y2.max())
    assert abs(kept.float().mean() - kept2.float().mean()) < 0.02


def test_rrelu() -> None:
    x = P - 0.5
    ours_, theirs = DECOMPOSITIONS[aten.rrelu_with_noise_functional.default], aten.rrelu_with_noise_functional.default
    for found, expected in zip(ours_(x, P, 0.2, 0.4, False), theirs(x, P, 0.2, 0.4, False), strict=True):
        torch.testing.assert_close(found, expected)
    y, factors = ours_(x, P, 0.2, 0.4, True)
    assert torch.equal(y, x * factors) and torch.equal(y[x > 0], x[x > 0])
    leaky = factors[x <= 0]
    assert 0.2 <= leaky.min() < 0.21 and 0.39 < leaky.max() < 0.4 and abs(leaky.mean() - 0.3) < 0.01


def mixed(x: np.ndarray) -> np.ndarray:
    """The hash `lowbias32` of Chris Wellons."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def test_bits_are_a_hash_of_the_position_and_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    seed = torch.tensor([-5, 123456789], dtype=torch.int32)
    monkeypatch.setattr(ours, "draw_seeds", lambda count, device=None: seed[None])
    first, second = seed.numpy().view(np.uint32)
    for size in ((2, 3, 5), (7,), (), (0, 3)):
        place = np.arange(int(np.prod(size)), dtype=np.uint32).reshape(size)
        expected = mixed(mixed(place + first) ^ second)
        assert np.array_equal(ours._bits(size).numpy().view(np.uint32), expected)
