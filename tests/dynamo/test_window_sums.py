"""Pooling by sums of windows equals eager pooling for any windows, even if an element is infinite or NaN."""

from __future__ import annotations

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tt_torch.dynamo.decompositions import pooling
from tt_torch.dynamo.decompositions.window_sums import Windows

aten = torch.ops.aten


@st.composite
def pools(draw: st.DrawFn) -> tuple[int, int, int, int, int]:
    """Size, kernel, stride, padding and dilation of one dimension."""
    kernel, stride, dilation = (draw(st.integers(1, 5)) for _ in range(3))
    padding = draw(st.integers(0, kernel // 2))
    return draw(st.integers(dilation * (kernel - 1) + 1, 21)), kernel, stride, padding, dilation


def _numbers(shape: list[int], odd: float) -> Tensor:
    """Random numbers and zeros of both signs. The middle element is `odd`."""
    values = torch.randn(math.prod(shape)) * torch.tensor([1.0, 0.0, -0.0])[torch.arange(math.prod(shape)) % 3]
    values[len(values) // 2] = odd
    return values.reshape(shape)


def _check(got: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(got, expected, equal_nan=True)
    assert torch.equal(got.signbit() & (got == 0), expected.signbit() & (expected == 0))


@given(pools(), st.booleans())
def test_windows_are_counted_as_in_pytorch(pool: tuple[int, int, int, int, int], ceil_mode: bool) -> None:
    size, kernel, stride, padding, dilation = pool
    pooled = torch.max_pool1d(torch.zeros(1, 1, size), kernel, stride, padding, dilation, ceil_mode)
    assert Windows.over(size, kernel, stride, padding, ceil_mode, dilation).number == pooled.shape[-1]


two_pools = st.lists(pools(), min_size=2, max_size=2)
odd_numbers = st.sampled_from([0.0, math.inf, -math.inf, math.nan])


@settings(max_examples=100)
@given(two_pools, odd_numbers, st.booleans(), st.booleans(), st.sampled_from([None, 3]))
def test_average_pooling(
    both: list[tuple[int, ...]], odd: float, ceil_mode: bool, count_include_pad: bool, divisor: int | None
) -> None:
    size, kernel, stride, padding, _ = (list(v) for v in zip(*both, strict=True))
    window = (kernel, stride, padding, ceil_mode, count_include_pad, divisor)
    x = _numbers([2, 3, *size], odd)
    expected = aten.avg_pool2d(x, *window)
    _check(pooling._average(x, *window), expected)
    grad = _numbers(list(expected.shape), odd)
    _check(pooling.avg_pool_backward(grad, x, *window), aten.avg_pool2d_backward(grad, x, *window))


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=3, max_size=3), odd_numbers)
def test_adaptive_average_pooling(dims: list[tuple[int, int]], odd: float) -> None:
    sizes, counts = (list(v) for v in zip(*dims, strict=True))
    x = _numbers([2, *sizes], odd)
    expected = aten._adaptive_avg_pool3d(x, counts)
    _check(pooling.adaptive_avg_pool3d(x, counts), expected)
    grad = _numbers(list(expected.shape), odd)
    _check(pooling.adaptive_avg_pool3d_backward(grad, x), aten._adaptive_avg_pool3d_backward(grad, x))


@settings(max_examples=100)
@given(two_pools, odd_numbers)
def test_folded_columns(both: list[tuple[int, ...]], odd: float) -> None:
    size, kernel, stride, padding, dilation = (list(v) for v in zip(*both, strict=True))
    places = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in both]
    columns = _numbers([2, 3 * math.prod(kernel), math.prod(places)], odd)
    window = (size, kernel, dilation, padding, stride)
    _check(pooling.col2im(columns, *window), aten.col2im(columns, *window))
