"""Dynamo traces with our settings for every form of `tt_torch.backend`, and for no other backend."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.exc import Unsupported
from torch._dynamo.utils import counters

import tt_torch

LAYER, SEQUENCE = nn.LSTM(4, 5), torch.randn(3, 2, 4)


@functools.wraps(tt_torch.backend)
def wrapped(*args: Any) -> Any:
    return tt_torch.backend(*args)


def another(gm: torch.fx.GraphModule, inputs: Any) -> Any:
    return tt_torch.backend(gm, inputs)


def check_restored() -> None:
    assert not torch._dynamo.config.allow_rnn
    assert torch._dynamo.utils.run_node.__module__ == "torch._dynamo.utils"


FORMS = [
    functools.partial(torch.compile, backend=tt_torch.backend),
    functools.partial(torch.compile, backend="tt"),
    functools.partial(torch.compile, backend=tt_torch.backend, options={}),
    functools.partial(torch.compile, backend=tt_torch.backend, dynamic=True),
    functools.partial(torch.compile, backend=functools.partial(functools.partial(tt_torch.backend), options={})),
    functools.partial(torch.compile, backend=wrapped),
    lambda layer, fullgraph: torch._dynamo.optimize(tt_torch.backend, nopython=fullgraph)(layer),
]


@pytest.mark.parametrize("compiler", FORMS)
def test_forms_of_the_backend(compiler: Callable[..., Any]) -> None:
    run = compiler(LAYER, fullgraph=True)
    for x in (SEQUENCE[:2], SEQUENCE[:1]):  # the second one is traced anew
        torch.testing.assert_close(run(x), LAYER(x), rtol=1e-4, atol=1e-4)
        check_restored()


def test_a_function_that_calls_the_backend_is_another_backend() -> None:
    with pytest.raises(Unsupported, match="LSTM"):
        torch.compile(LAYER, backend=another, fullgraph=True)(SEQUENCE)


def test_frames_after_a_break() -> None:
    def two(x: torch.Tensor) -> torch.Tensor:
        y = LAYER(x)[0]
        torch._dynamo.graph_break()
        return LAYER(y[..., :4])[0]

    counters.clear()
    torch.testing.assert_close(torch.compile(two, backend=tt_torch.backend)(SEQUENCE), two(SEQUENCE))
    assert sum(counters["graph_break"].values()) == 1
    assert counters["stats"]["unique_graphs"] == 2


def test_an_error_while_tracing() -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        raise ValueError(LAYER(x)[0].shape[0])

    with pytest.raises(ValueError, match="3"):
        torch.compile(fails, backend=tt_torch.backend)(SEQUENCE)
    check_restored()


def test_an_error_of_the_backend() -> None:
    @functools.wraps(tt_torch.backend)
    def broken(*args: Any) -> Any:
        raise RuntimeError("no backend today")

    with pytest.raises(RuntimeError, match="no backend today"):
        torch.compile(LAYER, backend=broken, fullgraph=True)(SEQUENCE)
    check_restored()
