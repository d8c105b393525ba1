"""Warnings point at the user's line, not at ours."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch

import tt_torch
from tt_torch import user_code
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.dynamo.exactness.plan import Float64Warning
from tt_torch.torch_private.tracing import make_fx

IN_FLOAT64 = lambda x: x.double().exp()  # noqa: E731


def line_of(call: Callable[[], object]) -> int:
    return call.__code__.co_firstlineno  # type: ignore[attr-defined]


def with_host_ops_and_a_break(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    first = torch.linalg.eigvalsh(x + 1)
    torch._dynamo.graph_break()

    return first, torch.linalg.eigvalsh(x + 2)


def test_a_warning_of_a_compilation_points_at_the_call() -> None:
    run = torch.compile(IN_FLOAT64, backend=tt_torch.backend)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call = lambda: run(torch.randn(3, 3))  # noqa: E731
        call()
    (told,) = [w for w in caught if w.category is Float64Warning]
    assert (told.filename, told.lineno) == (__file__, line_of(call))


def test_the_warning_of_a_host_op_points_at_the_op() -> None:
    """This also holds after a graph break, where the running line is the line of the break."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.compile(with_host_ops_and_a_break, backend=tt_torch.backend)(torch.randn(3, 3))
    told = [(w.filename, w.lineno) for w in caught if w.category is HostFallbackWarning]
    assert told == [(__file__, line_of(with_host_ops_and_a_break) + line) for line in (1, 4)]


def test_an_op_of_a_module_of_pytorch_is_named_by_the_line_that_calls_the_model() -> None:
    module = torch.nn.EmbeddingBag(5, 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = torch.compile(module, backend=tt_torch.backend)
        call = lambda: run(torch.tensor([[0, 4]]))  # noqa: E731
        call()
    told = [w.message for w in caught if w.category is HostFallbackWarning]
    assert told
    assert all(op.location == f"{__file__}:{line_of(call)}" for warning in told for op in warning.ops)


def test_code_that_pytorch_makes_is_not_the_users_line() -> None:
    """PyTorch traces a graph by functions that it makes from strings."""
    seen: list[str] = []

    def traced(x: torch.Tensor) -> torch.Tensor:
        seen.append(eval("line()", {"line": user_code.line}))
        return x

    call = lambda: make_fx(traced)(torch.ones(2))  # noqa: E731
    call()
    assert seen == [f"{__file__}:{line_of(traced) + 1}"]
