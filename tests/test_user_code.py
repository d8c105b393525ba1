"""Warnings point at the user's line, not at ours."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch

import tt_torch
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.dynamo.exactness.plan import Float64Warning

WITH_HOST_OP = lambda x: torch.linalg.eigvalsh(x + 1)  # noqa: E731
IN_FLOAT64 = lambda x: x.double().exp()  # noqa: E731


def line_of(call: Callable[[], object]) -> int:
    return call.__code__.co_firstlineno  # type: ignore[attr-defined]


@pytest.mark.parametrize(("model", "category"), [(WITH_HOST_OP, HostFallbackWarning), (IN_FLOAT64, Float64Warning)])
def test_a_warning_of_a_compilation_points_at_the_call(model: Callable[..., object], category: type[Warning]) -> None:
    run = torch.compile(model, backend=tt_torch.backend)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call = lambda: run(torch.randn(3, 3))  # noqa: E731
        call()
    (told,) = [w for w in caught if w.category is category]
    assert (told.filename, told.lineno) == (__file__, line_of(call))


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
