"""Inputs and outputs of compiled functions: structures, aliases, mutation, types, memory formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import tt_torch


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend=tt_torch.backend, fullgraph=True, **options)


def same(got: torch.Tensor, expected: torch.Tensor) -> None:
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)


# --- outputs


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x,
        lambda x: x.view(4, 3),
        lambda x: (x, x + 1),
        lambda x: x.t()[1:],
        lambda x: x.detach(),
    ],
)
def test_outputs_that_alias_inputs_share_their_memory(function: Callable[..., Any]) -> None:
    x = torch.randn(3, 4)
    got, expected = compiled(function)(x), function(x)
    got, expected = (v[0] if isinstance(v, tuple) else v for v in (got, expected))
    same(got, expected)
    assert got.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    assert (got.data_ptr(), got.stride()) == (expected.data_ptr(), expected.stride())


def test_the_same_tensor_twice() -> None:
    def twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x + 1
        return y, y

    first, second = compiled(twice)(torch.randn(3))
    assert first is second


def test_nested_structures_and_values_that_are_no_tensors() -> None:
    def nested(inputs: dict[str, Any]) -> dict[str, Any]:
        total = inputs["a"] + inputs["pair"][1]
        return {"sum": total, "rest": [total * 2, (inputs["a"], None)], "size": total.shape[0], "name": "x"}

    inputs = {"a": torch.randn(3), "pair": (torch.randn(3), torch.randn(3))}
    got, expected = compiled(nested)(inputs), nested(inputs)
    same(got["sum"], expected["sum"])
    same(got["rest"][0], expected["rest"][0])
    assert got["rest"][1][0] is inputs["a"] and got["rest"][1][1] is None
    assert (got["size"], got["name"]) == (3, "x")


def test_outputs_that_depend_on_no_input() -> None:
    def constant(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.arange(4), torch.full((2,), 0.5)

    first, second = compiled(constant)(torch.randn(3))
    same(first, torch.arange(4))
    same(second, torch.full((2,), 0.5))


def test_scalars() -> None:
    x = torch.randn(3)
    same(compiled(lambda x: x.sum())(x), x.sum())
    same(compiled(lambda x, s: x * s)(x, torch.tensor(2.0)), x * 2)
    same(compiled(lambda x, s: x * s)(x, 2.5), x * 2.5)


# --- inputs


@pytest.mark.parametrize(
    "dtype",
    [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8],
)
def test_types_come_back(dtype: torch.dtype) -> None:
    x = torch.arange(6).reshape(2, 3).to(dtype)
    same(compiled(lambda x: x + x)(x), x + x)


def test_booleans_come_back() -> None:
    x = torch.tensor([True, False, True])
    same(compiled(lambda x: (x, ~x, x & ~x))(x)[1], ~x)


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(4, 3).t(),
        torch.randn(1, 4).expand(3, 4),
        torch.randn(6, 8)[::2, 1::2],
        torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        torch.randn(10)[3:7],
        torch.tensor(1.5),
        torch.empty(0, 4),
    ],
    ids=["transposed", "expanded", "strided", "channels last", "offset", "rank 0", "empty"],
)
def test_any_memory_format(x: torch.Tensor) -> None:
    same(compiled(lambda x: x * 2 + 1)(x), x * 2 + 1)


# --- mutation


def test_input_changed_in_place() -> None:
    x, y = torch.randn(3, 4), torch.randn(4)
    expected = x.clone()
    expected.add_(y).mul_(2)
    result = compiled(lambda x, y: x.add_(y).mul_(2))(x, y)
    same(x, expected)
    assert result.data_ptr() == x.data_ptr()


def test_part_of_an_input_changed() -> None:
    def write(x: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        x[1:3, ::2] = v
        x[-1] += 1
        return x.sum()

    x, v = torch.randn(5, 4), torch.randn(2, 2)
    expected = x.clone()
    total = write(expected, v)
    same(compiled(write)(x, v), total)
    same(x, expected)


def test_static_cache() -> None:
    """One program writes to a new place at each step: by index_copy_, or by assignment."""

    def by_index(cache: torch.Tensor, position: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        cache.index_copy_(2, position, new)
        return cache.sum((2, 3))

    def by_assignment(cache: torch.Tensor, position: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        cache[:, :, position] = new
        return cache.sum((2, 3))

    for function in (by_index, by_assignment):
        ours, theirs, step = torch.zeros(1, 2, 6, 4), torch.zeros(1, 2, 6, 4), compiled(function)
        for place in range(3):
            position, new = torch.tensor([place]), torch.randn(1, 2, 1, 4)
            same(step(ours, position, new), function(theirs, position, new))
        same(ours, theirs)


def test_batch_norm_in_training_moves_its_statistics() -> None:
    ours, theirs = torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3)
    run = compiled(ours)
    with torch.no_grad():
        for _ in range(2):
            x = torch.randn(4, 3, 5, 5) * 2 + 1
            same(run(x), theirs(x))
    same(ours.running_mean, theirs.running_mean)
    same(ours.running_var, theirs.running_var)
    same(ours.num_batches_tracked, theirs.num_batches_tracked)


def test_a_changed_buffer() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            return x * self.count

    model = Counter()
    run, x = compiled(model), torch.ones(2)
    same(torch.stack([run(x) for _ in range(3)])[:, 0], torch.tensor([1.0, 2.0, 3.0]))
    same(model.count, torch.tensor([3.0]))
