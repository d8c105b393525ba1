"""An op that changes the form of an input in place, after a write to it, does not change the caller's other memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.errors import ArgumentError
from tt_torch.torch_private.dynamo import BackendCompilerFailed

PROGRAMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "squeeze_, which changes nothing": lambda x: x.zero_().squeeze_(),
    "squeeze_ of a dimension": lambda x: x.sign_().squeeze_(0) + 1,
    "t_": lambda x: x.add_(1).t_(),
    "transpose_": lambda x: x.mul_(3).transpose_(0, 1) * 2,
    "behind an operator": lambda x: x.__iadd__(1).t_(),
    "behind float(), which gives the input itself": lambda x: x.float().squeeze_().mul_(2),
}
PLACES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "the second part": lambda base: base[1],
    "with gaps": lambda base: base[0, :, ::2],
    "permuted": lambda base: base[0].t(),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_write_stays_in_its_places(name: str, place: str) -> None:
    seen = []
    for run in (PROGRAMS[name], torch.compile(PROGRAMS[name], backend=tt_torch.backend)):
        base = torch.arange(24.0).view(2, 3, 4)
        x = PLACES[place](base)
        if run is PROGRAMS[name]:
            result = run(x)
        else:
            with pytest.warns(HostFallbackWarning, match="changes the shape or the strides of an input"):
                result = run(x)
        seen.append((base, x, result))
    for expected, got in zip(*seen, strict=True):
        torch.testing.assert_close(got, expected, check_stride=True)


def test_a_tensor_of_the_graph_may_change_its_form(recwarn: pytest.WarningsRecorder) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        y = x.view(12, 2)
        y.t_()
        return y.mul_(2)

    ours, eager = torch.arange(24.0), torch.arange(24.0)
    torch.testing.assert_close(torch.compile(function, backend=tt_torch.backend)(ours), function(eager))
    torch.testing.assert_close(ours, eager)
    assert not [w for w in recwarn if issubclass(w.category, HostFallbackWarning)]


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
def test_strides_behind_a_dropout_that_drops_nothing() -> None:
    def function(x: torch.Tensor) -> tuple[object, ...]:
        torch.nn.functional.dropout(x, 0.0).transpose_(0, -1)
        return x.positive().roll(1, 1), x.shape

    expected, got = (f(torch.arange(15.0).view(3, 5)) for f in (function, torch.compile(function, backend="tt")))
    torch.testing.assert_close(got, expected, check_stride=True)


def test_a_shape_is_read_after_it_has_changed() -> None:
    def function(x: torch.Tensor) -> tuple[object, ...]:
        y = x + 1
        y.transpose_(0, 1)
        shape = y.shape
        y.unsqueeze_(0)
        return y.as_strided(y.shape, y.stride()), shape, y.shape, y.stride(), y.numel() / y.size(1)

    x = torch.arange(6.0).reshape(2, 3)
    for run in (torch.compile(function, backend=tt_torch.backend), tt_torch.compile_model(function, (x,))):
        torch.testing.assert_close(run(x), function(x))


def test_a_shape_is_read_by_another_name_of_the_tensor() -> None:
    def widened(tensors: list[torch.Tensor]) -> None:
        tensors[0].unsqueeze_(0)

    def function(x: torch.Tensor) -> tuple[object, ...]:
        y = x + 1
        z = y.t_()
        widened([z])
        shapes = y.shape, y.dim(), z.stride()
        y.squeeze_(0)
        return y * 2, shapes, z.shape, z.is_contiguous()

    x = torch.arange(6.0).reshape(2, 3)
    torch.testing.assert_close(torch.compile(function, backend=tt_torch.backend)(x), function(x))


def test_it_is_an_error_if_nothing_may_run_on_the_host() -> None:
    options = {"compiler_config": CompilerConfig(fallback="error")}
    with pytest.raises(BackendCompilerFailed, match=r"in place.* without `_`") as raised:
        torch.compile(lambda x: x.zero_().squeeze_(), backend=tt_torch.backend, options=options)(torch.ones(4))
    assert isinstance(raised.value.inner_exception, ArgumentError)
