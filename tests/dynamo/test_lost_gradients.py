"""After a write with gradients to a detached input, the result has these gradients, as in eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.errors import ArgumentError
from tt_torch.torch_private.dynamo import BackendCompilerFailed


def flat(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return x.view(-1)


def scaled(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return x.mul_(2)


Program = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
LOST: dict[str, Program] = {
    "the detached tensor": lambda x, v: x.detach().add_(v),
    "a view of it": lambda x, v: x.detach().mul_(0.5).add_(v).view(-1),
    "a write to a row": lambda x, v: ((y := x.detach()).__setitem__(0, v), y)[1],
    "the data": lambda x, v: x.data.add_(v)[1:],
    "the data by its name": lambda x, v: ((y := x.data), y.add_(v), y)[2],
    "the data after an assignment": lambda x, v: ((y := x.data).__setitem__(0, v), y)[1],
}
KEPT: dict[str, Program] = {
    "a write to a part of the input": lambda x, v: x[1:].add_(v),
    "only read afterwards": lambda x, v: x.detach().add_(v) * 3,
    "a detached result": lambda x, v: (x * 2).detach().add_(v),
    "a write without gradients": lambda x, v: x.detach().mul_(2),
    "a write to data that is not returned": lambda x, v: (x.data.add_(v), x * v)[1],
    "a write under no_grad": lambda x, v: scaled(x)[1:] * v,
    "a write under no_grad, and nothing else": lambda x, v: scaled(x),
    "a view of a result, which no_grad cuts": lambda x, v: flat(x * v),
    "a part of the input": lambda x, v: x[:, 1],
    "writes of both kinds": lambda x, v: scaled(x.add_(v)) + v,
}


def seen(run: Program, has_gradients: bool) -> list[object]:
    w, v = torch.ones(3, 4, requires_grad=has_gradients), torch.arange(4.0, requires_grad=True)
    x = w * 1
    y = run(x, v)
    total = (y * torch.arange(y.numel()).view(y.shape)).sum() + (x * 7).sum() + v.sum()
    total.backward()
    return [x, y, y.requires_grad, w.grad, v.grad]


@pytest.mark.parametrize("has_gradients", [False, True])
@pytest.mark.parametrize("name", LOST)
def test_gradients_reach_what_was_written(name: str, has_gradients: bool) -> None:
    compiled = torch.compile(LOST[name], backend=tt_torch.backend)
    with pytest.warns(HostFallbackWarning, match="returns a detached input after a write with gradients"):
        got = seen(compiled, has_gradients)
    torch.testing.assert_close(got, seen(LOST[name], has_gradients))


CUT: dict[str, Program] = {
    "the view": lambda x, v: flat(x),
    "a part of the view": lambda x, v: flat(x)[1:],
    "the view of a view": lambda x, v: flat(x[1:]),
}


@pytest.mark.parametrize("has_gradients", [False, True])
@pytest.mark.parametrize("name", CUT)
@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
def test_the_gradient_of_a_view_that_no_grad_cuts_stays_there(name: str, has_gradients: bool) -> None:
    compiled = torch.compile(CUT[name], backend=tt_torch.backend)
    torch.testing.assert_close(seen(compiled, has_gradients), seen(CUT[name], has_gradients))


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
def test_a_view_under_no_grad_has_no_gradient_after_a_write_to_its_base() -> None:
    x, v = torch.ones(3, 4, requires_grad=True) * 1, torch.ones(4, requires_grad=True)
    view = torch.compile(lambda x, v: (flat(x), x.add_(v))[0], backend=tt_torch.backend)(x, v)
    assert view.requires_grad
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view.sum()


@pytest.mark.parametrize("has_gradients", [False, True])
@pytest.mark.parametrize("name", KEPT)
def test_other_graphs_stay_on_the_device(name: str, has_gradients: bool, recwarn: pytest.WarningsRecorder) -> None:
    compiled = torch.compile(KEPT[name], backend=tt_torch.backend)
    torch.testing.assert_close(seen(compiled, has_gradients), seen(KEPT[name], has_gradients))
    assert not [w for w in recwarn if issubclass(w.category, HostFallbackWarning)]


def test_it_is_an_error_if_nothing_may_run_on_the_host() -> None:
    options = {"compiler_config": CompilerConfig(fallback="error")}
    v = torch.ones(4, requires_grad=True)
    compiled = torch.compile(lambda x: x.detach().add_(v), backend=tt_torch.backend, options=options)
    with pytest.raises(BackendCompilerFailed, match=r"detached input .* clone\(\)") as raised:
        compiled(torch.ones(4))
    assert isinstance(raised.value.inner_exception, ArgumentError)


def test_a_part_of_an_input_that_is_a_view_stays_on_the_device(recwarn: pytest.WarningsRecorder) -> None:
    """Then the base of its example has no gradients."""
    x = torch.arange(12.0).view(3, 4).requires_grad_()
    part = torch.compile(lambda x: x[:, 1], backend=tt_torch.backend)(x)
    part.sum().backward()
    assert torch.equal(x.grad, torch.tensor([0.0, 1.0, 0.0, 0.0]).expand(3, 4))
    assert not [w for w in recwarn if issubclass(w.category, HostFallbackWarning)]
