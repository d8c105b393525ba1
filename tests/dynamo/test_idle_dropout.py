"""Dropout that drops nothing gives the tensor itself, as in eager PyTorch: writes to the result reach the operand."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn import functional

import tt_torch

IDLE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "in evaluation": lambda h: functional.dropout(h, 0.5, training=False),
    "of probability zero": lambda h: functional.dropout(input=h, p=0.0),
    "a module": torch.nn.Dropout(0.1).eval(),
    "a module that writes in place": torch.nn.Dropout(0.1, inplace=True).eval(),
    "of torch": lambda h: torch.dropout(h, 0.5, False),
    "of torch, by name": lambda h: torch.dropout(h, p=0.5, train=False),
}


@pytest.mark.parametrize("has_gradients", [False, True])
@pytest.mark.parametrize("name", IDLE)
def test_a_write_to_the_result_reaches_the_operand(name: str, has_gradients: bool) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        of_input, h = IDLE[name](x), x * 2
        of_input.mul_(3)
        d = IDLE[name](h)
        d.add_(1)
        return d + h, of_input, d

    seen = []
    for run in (function, torch.compile(function, backend=tt_torch.backend)):
        w = torch.arange(6.0).requires_grad_(has_gradients)
        x = w * 1
        results = run(x)
        if has_gradients:
            (results[0].sum() + x.sum()).backward()
        assert results[1].data_ptr() == x.data_ptr()
        seen.append([*results, x, w.grad])
    torch.testing.assert_close(*seen)


def test_a_package_returns_the_operand_too(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return functional.dropout(x, 0.0), functional.dropout(x.t() + 1, 0.0)

    x = torch.arange(12.0).as_strided((3, 2), (4, 2))
    compiled = tt_torch.compile_model(function, (x,))
    compiled.save(tmp_path / "model.ttpkg")
    for run in (compiled, tt_torch.load(tmp_path / "model.ttpkg")):
        expected, got = function(x), run(x)
        torch.testing.assert_close(got, expected, check_stride=True)
        assert got[0].data_ptr() == x.data_ptr()


def test_other_dropout_stays() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = x * 2
        d = functional.dropout(h, 0.5)
        d.add_(1)
        return d, h

    torch.manual_seed(0)
    d, h = torch.compile(function, backend=tt_torch.backend)(torch.ones(200))
    assert torch.equal(h, torch.full((200,), 2.0))
    assert sorted(d.unique().tolist()) == [1.0, 5.0]


def written_behind_reshape(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    d = functional.dropout(x, 0.0)
    d.reshape(d.shape).abs_()
    return d, x


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (written_behind_reshape, torch.arange(-6, 6)[::2]),
        (lambda x: (functional.dropout(x, training=False).expand(2, 3), x + 1), torch.tensor([4]).expand(3)),
    ],
)
def test_views_of_the_result_are_views_of_an_operand_with_any_strides(
    function: Callable[[torch.Tensor], tuple[torch.Tensor, ...]], x: torch.Tensor
) -> None:
    expected = function(copy.deepcopy(x))
    results = torch.compile(function, backend=tt_torch.backend)(x)
    torch.testing.assert_close(results, expected)
    assert results[0].data_ptr() == x.data_ptr() and results[0].stride() == expected[0].stride()
