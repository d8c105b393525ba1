"""Writes to elements at one place in memory run on the host with a warning, and agree with eager PyTorch."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable

import pytest
import torch

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.errors import ArgumentError
from tt_torch.torch_private.dynamo import BackendCompilerFailed

MASK, ROWS = torch.tensor([True, False, True, False]), torch.tensor([0, 2])
WRITES: dict[str, Callable[[torch.Tensor], object]] = {
    "fill_": lambda v: v.fill_(33),
    "zero_": lambda v: v.zero_(),
    "masked_fill_": lambda v: v.masked_fill_(MASK, 7),
    "by a mask": lambda v: v.__setitem__((slice(None), MASK), 7.0),
    "index_fill_": lambda v: v.index_fill_(1, ROWS, 5),
    "a diagonal": lambda v: v.diagonal().fill_(4),
    "a row": lambda v: v[1].mul_(2),
    "a row, by an operator": lambda v: operator.iadd(v[1], 2),
    "a row, out of place": lambda v: torch.exp(torch.arange(4.0), out=v[2]),
    "rows in a list": lambda v: torch._foreach_add_([v[0], v[2]], 1),
    "an activation in place": lambda v: torch.nn.functional.relu(v[0], inplace=True),
}
VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "expand": lambda x: x[:4].expand(3, 4),
    "broadcast_to": lambda x: torch.broadcast_to(x[:4], (3, 4)),
    "meshgrid": lambda x: torch.meshgrid(torch.zeros(3), x[:4], indexing="ij")[1],
    "a view of it": lambda x: x[:4].expand(2, 5, 4)[1, 1:4],
    "unfold": lambda x: x.unfold(0, 4, 1),
    "as_strided": lambda x: x.as_strided((3, 4), (1, 1)),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.filterwarnings("ignore:Use of .* on expanded tensors:UserWarning")
def test_a_write_reaches_each_element_once(view: str, write: str) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        repeated = VIEWS[view](x)
        WRITES[write](repeated)
        return repeated * 2, x + 1

    x = torch.tensor([0.3, -1.5, torch.inf, 2.0, 1.0, -0.25])
    expected_x, got_x = x.clone(), x.clone()
    expected = function(expected_x)
    with pytest.warns(HostFallbackWarning, match="expand"):
        got = torch.compile(function, backend="tt")(got_x)
    for a, b in zip((*got, got_x), (*expected, expected_x), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (y := x + 1, y.unfold(0, 2, 3).mul_(2))[0],
        lambda x: (x.unfold(0, 2, 2)[1].fill_(3), x * 2)[1],
        lambda x: (y := x.argmin(), y.unfold(-1, 0, 1).bitwise_and_(3))[0],
    ],
)
def test_a_write_to_windows_keeps_what_is_beside_them(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    inputs = [torch.tensor([0.3, -1.5, torch.inf, 2.0, 1.0]) for _ in range(2)]
    with pytest.warns(HostFallbackWarning, match="windows of unfold"):
        got = torch.compile(function, backend="tt")(inputs[0])
    assert torch.equal(got, function(inputs[1])) and torch.equal(*inputs)


@pytest.mark.parametrize("view", VIEWS)
def test_a_write_to_an_input_reaches_all_that_is_at_its_place(view: str) -> None:
    def function(repeated: torch.Tensor) -> torch.Tensor:
        torch.nn.functional.dropout(repeated, training=False).select(0, 1).select(0, 0).mul_(7)
        return repeated * 2

    x = torch.tensor([0.3, -1.5, torch.inf, 2.0, 1.0, -0.25])
    inputs = [VIEWS[view](x.clone()) for _ in range(2)]
    with pytest.warns(HostFallbackWarning, match="expand"):
        got = torch.compile(function, backend="tt")(inputs[0])
    assert torch.equal(got, function(inputs[1])) and torch.equal(*inputs)


def test_it_is_an_error_if_nothing_may_run_on_the_host() -> None:
    options = {"compiler_config": CompilerConfig(fallback="error")}
    with pytest.raises(BackendCompilerFailed, match=r"elements at one place in memory.*clone\(\)"):
        torch.compile(lambda x: x.expand(3, 4).fill_(2) + 1, backend=tt_torch.backend, options=options)(torch.ones(4))
    with pytest.raises(ArgumentError, match="clone"):
        tt_torch.compile_model(lambda x: x.expand(3, 4).fill_(2) + 1, (torch.ones(4),))
    with pytest.raises(ArgumentError, match="clone"):
        tt_torch.compile_model(lambda x: x[0].mul_(2) + 1, (torch.ones(6).unfold(0, 4, 1),))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.expand(3, 4).clone().fill_(2) + x,
        lambda x: x.mul_(2).expand(3, 4) + 1,
        lambda x: x.expand(1, 1, 4).fill_(2) + x,
        lambda x: x.expand_as(x).mul_(2) + x,
        lambda x: torch.broadcast_to(x, (1, 4))[0, 1:].fill_(2).sum() + x,
        lambda x: (x.expand(3, 4) + 0).mul_(3),
        lambda x: ((x > 0).expand(3, 4) & (x < 1)) | (x.expand(3, 4) != 2),
        lambda x: x.expand(3, 4).unsqueeze_(0) + x,
        lambda x: x.expand(input_sizes := [1, -1]).fill_(2) * len(input_sizes),
        lambda x: torch.broadcast_to(size=(1, 4), input=x).fill_(2) + x,
        lambda x: x.unfold(0, 2, 2).mul_(2).sum() + x,
        lambda x: x.as_strided((2, 2), (1, 2)).mul_(2).sum() + x,
    ],
)
def test_writes_to_other_tensors_stay_on_the_device(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.tensor([0.3, -1.5, torch.inf, 2.0])
    y = x.clone()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = torch.compile(function, backend="tt")(x)
    assert torch.equal(got, function(y)) and torch.equal(x, y)


@pytest.mark.parametrize("expanded", [lambda x: x.expand_as(x), lambda x: x.expand(4), lambda x: x.expand(1, -1)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_later_change_of_shape_is_not_seen_before(
    expanded: Callable[[torch.Tensor], torch.Tensor], dynamic: bool
) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        view = expanded(x)
        double = view * 2
        view.unsqueeze_(-1)
        view.fill_(7)
        return double, view + 1

    x, y = torch.ones(4), torch.ones(4)
    for got, expected in zip(
        (*torch.compile(function, backend="tt", dynamic=dynamic)(x), x), (*function(y), y), strict=True
    ):
        assert got.shape == expected.shape and torch.equal(got, expected)


@pytest.mark.parametrize("dim", [0, 2, -1, -2])
def test_windows_that_have_each_element_once_keep_the_signs_of_zeros(dim: int) -> None:
    """A sum with zeros would make 0.0 of -0.0, in a write as well as in a gradient."""

    def write(x: torch.Tensor) -> torch.Tensor:
        return x.unfold(dim, 2, 2).mul_(2)

    def gradient(x: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad((x.unfold(dim, 2, 2) * -torch.zeros(2)).sum(), x)[0]

    for function in (write, gradient):
        memory = [torch.full((2, 4, 2, 6), -0.0).transpose(1, 3).requires_grad_(function is gradient) for _ in range(2)]
        got, expected = torch.compile(function, backend=tt_torch.backend)(memory[0]), function(memory[1])
        assert torch.equal(got.signbit(), expected.signbit()) and torch.equal(memory[0].signbit(), memory[1].signbit())
