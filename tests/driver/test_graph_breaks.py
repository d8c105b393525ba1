"""Graph breaks are told with their reason and the user's line, once per frame; `fallback="error"` refuses them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.graph_breaks import GraphBreakWarning
from tt_torch.errors import GraphBreakError

X = torch.ones(3)
STRICT = {"compiler_config": CompilerConfig(fallback="error")}


def printing(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    print("between two graphs")
    return y * 2


def looping(x: torch.Tensor) -> torch.Tensor:
    for i in range(3):
        x = x * 2 if x.mean() < i else x + i
    return x


def calling(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.Sequential(torch.nn.ReLU(), Inner())(x) + 1


class Inner(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x * 2


def whole(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


def told(function: Callable[..., Any], *calls: tuple[Any, ...], **options: Any) -> list[GraphBreakWarning]:
    torch.compiler.reset()
    compiled = torch.compile(function, backend="tt", **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for arguments in calls:
            torch.testing.assert_close(compiled(*arguments), function(*arguments))
    return [w.message for w in caught if isinstance(w.message, GraphBreakWarning)]


@pytest.mark.parametrize(
    ("function", "code", "line", "reason"),
    [
        (printing, printing, 2, "builtin operator `print`"),
        (looping, looping, 2, "Data-dependent branching: Detected"),
        (calling, Inner.forward, 1, "Call to `torch._dynamo.graph_break()`: User-inserted"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_break_is_told_with_its_line_and_is_refused(
    function: Callable[..., Any], code: Any, line: int, reason: str, capsys: pytest.CaptureFixture
) -> None:
    place = f"{__file__}:{code.__code__.co_firstlineno + line}"
    first, *_ = told(function, (X,))
    assert [broken.location for broken in first.breaks] == [place] and reason in first.breaks[0].reason
    assert f"{place}: " in str(first) and "Hint" not in str(first) and str(first).count("\n") == 1
    torch.compiler.reset()
    capsys.readouterr()
    with pytest.raises(GraphBreakError) as refused:
        torch.compile(function, backend=tt_torch.backend, options=STRICT)(X)
    assert f"{place}: " in str(refused.value) and reason in str(refused.value)
    assert capsys.readouterr().out == ""  # nothing of the frame has run


def test_the_variable_covers_breaks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TT_TORCH_FALLBACK", "error")
    torch.compiler.reset()
    with pytest.raises(GraphBreakError):
        torch.compile(printing, backend=functools.partial(tt_torch.backend, options={}))(X)


def test_a_program_of_one_graph_tells_nothing() -> None:
    assert told(whole, (X,), (torch.ones(4),), (torch.ones(2, 2),)) == []
    torch.testing.assert_close(torch.compile(whole, backend=tt_torch.backend, options=STRICT)(X), whole(X))


def test_each_frame_is_told_once() -> None:
    """Later calls run the code that was compiled in the first call."""
    assert len(told(printing, (X,), (X,), (X,))) == 1


def test_breaks_that_optimizers_ask_for_are_not_told() -> None:
    """PyTorch breaks the graph around each step of an optimizer, whose computations stay on the device."""
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    weight.grad = torch.ones(3)
    torch.compiler.reset()
    torch.compile(lambda: optimizer.step(), backend=tt_torch.backend, options=STRICT)()
    torch.testing.assert_close(weight.detach(), torch.full((3,), 0.5))


def test_the_limit_of_recompilations_is_told() -> None:
    def named(x: torch.Tensor, name: str) -> torch.Tensor:
        return x * len(name)

    limit = torch._dynamo.config.recompile_limit
    calls = [(X, "a" * i) for i in range(limit + 3)]
    (given_up,) = told(named, *calls, dynamic=False)
    assert given_up.breaks[0].location == f"{__file__}:{named.__code__.co_firstlineno}"
    assert "recompile limit exceeded" in given_up.breaks[0].reason


def test_other_backends_and_fullgraph_are_left_alone() -> None:
    torch.compiler.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error", GraphBreakWarning)
        torch.compile(printing, backend="eager")(X)
        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.compile(printing, backend="tt", fullgraph=True)(X)
