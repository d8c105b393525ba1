"""Python numbers become values of a dtype as eager PyTorch makes them."""

from __future__ import annotations

import math

import pytest
import torch

from tt_torch.dynamo.scalars import number_in

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
NUMBERS = [0, 1, -1, 44, 300, -129, 2**31 - 1, 2**31, -(2**31) - 1, 2**32 + 7, -(2**40), 2**63 - 1, True, False]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_an_integer_keeps_its_lowest_bits(dtype: torch.dtype) -> None:
    expected = torch.tensor([int(n) for n in NUMBERS]).to(dtype).tolist()
    assert [number_in(n, dtype) for n in NUMBERS] == expected


def test_any_number_but_zero_is_true() -> None:
    assert [number_in(n, torch.bool) for n in (0, 0.0, False, 2, -0.5, 2**40)] == [False] * 3 + [True] * 3


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.complex64, torch.float64], ids=str)
def test_only_integers_of_more_than_32_bits_become_floats(dtype: torch.dtype) -> None:
    numbers = [3, 2**31 - 1, 1 - 2**31, 2**31, -(2**31), 2**40, 0.1, True]
    found = [number_in(n, dtype) for n in numbers]
    assert found == numbers
    assert [type(n) for n in found] == [int] * 3 + [float] * 4 + [bool]


def test_numbers_beyond_float32_are_infinite_in_a_dtype_without_them() -> None:
    assert [number_in(n, torch.float32) for n in (10**39, -1e39)] == [math.inf, -math.inf]
    assert [number_in(n, torch.float64) for n in (10**39, -1e39)] == [1e39, -1e39]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32], ids=str)
def test_a_float_stays_as_it_is(dtype: torch.dtype) -> None:
    found = number_in(2.75, dtype)
    assert (found, type(found)) == (2.75, float)
