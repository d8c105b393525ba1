"""Asynchronous calls: they return at once, give eager's results in any order, and say what they cannot do."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch import BackendOptions, CompilerConfig
from tt_torch.driver.executor import Executor
from tt_torch.driver.pending import Pending
from tt_torch.errors import AsyncError
from tt_torch.torch_private.dynamo import BackendCompilerFailed

TWO_STAGES = {"0": 0, "1": 0, "2": 1}


def asynchronous(model, device_map=()):
    config = CompilerConfig(device_map=device_map)
    options = BackendOptions(compiler_config=config, async_mode=True)
    return torch.compile(model, backend=tt_torch.backend, options=options)


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).eval()


@pytest.mark.parametrize("device_map", [(), TWO_STAGES])
def test_many_calls_at_once_are_fetched_in_any_order(device_map) -> None:
    model, inputs = net(), [torch.randn(16, 64) for _ in range(20)]
    run, order = asynchronous(model, device_map), random.sample(range(20), 20)
    with torch.no_grad():
        calls = [run(x) for x in inputs]
        for i in order:
            torch.testing.assert_close(calls[i].result(60), model(inputs[i]))
        assert all(call.done() for call in calls)


def test_an_input_may_change_after_the_call() -> None:
    model, x = net(), torch.randn(16, 64)
    run = asynchronous(model, TWO_STAGES)
    with torch.no_grad():
        expected = model(x)
        calls = []
        for _ in range(5):
            calls.append(run(x.copy_(x)))
        x.zero_()
        for got in tt_torch.to_host(calls):
            torch.testing.assert_close(got, expected)


def test_containers_and_gradients() -> None:
    w = torch.randn(3, requires_grad=True)
    run = asynchronous(lambda w: {"a": w * 2, "b": [w.sum()], "c": 3})
    found = tt_torch.to_host(run(w))
    assert found["c"] == 3 and torch.equal(found["b"][0], w.sum())
    found["a"].sum().backward()
    assert torch.equal(w.grad, torch.full((3,), 2.0))


def test_an_error_in_the_middle_concerns_only_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = net(), torch.randn(16, 64)
    run, calls = asynchronous(model, TWO_STAGES), []
    whole = Executor.__call__

    def failing(self, inputs):
        if inputs[-1].isnan().any() or any(v.isnan().any() for v in inputs):
            raise MemoryError("the device is full")
        return whole(self, inputs)

    with torch.no_grad():
        tt_torch.to_host(run(x))
        monkeypatch.setattr(Executor, "__call__", failing)
        calls = [run(x), run(x * float("nan")), run(x + 1)]
        torch.testing.assert_close(calls[0].result(60), model(x))
        with pytest.raises(MemoryError, match="device is full"):
            calls[1].result(60)
        torch.testing.assert_close(calls[2].result(60), model(x + 1))


def test_a_result_that_was_not_waited_for_is_no_tensor() -> None:
    with torch.no_grad():
        result = asynchronous(net())(torch.randn(2, 64))
        assert isinstance(result, Pending)
        with pytest.raises(AttributeError, match=r"'shape'.*result\(\)"):
            result.shape  # noqa: B018 - the access is what fails
        with pytest.raises(TypeError, match="Pending"):
            torch.relu(result)
        result.result()
        with pytest.raises(TypeError, match="neither true nor false"):
            bool(result)


def test_a_weight_that_changes_meanwhile_is_an_error() -> None:
    model = nn.Sequential(*(nn.Linear(512, 512) for _ in range(8))).eval()
    run, x = asynchronous(model), torch.randn(512, 512)
    with torch.no_grad():
        tt_torch.to_host(run(x))
        calls = [run(x) for _ in range(8)]
        model[0].weight.mul_(2)
        with pytest.raises(AsyncError, match="weight was written"):
            calls[-1].result(60)
        torch.testing.assert_close(run(x).result(60), model(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.add_(1), "writes to x"),
        (lambda x: torch.rand_like(x) + x, "random numbers"),
        (torch.nn.functional.dropout, "random numbers"),
    ],
)
def test_calls_that_must_not_overlap_are_refused(function, words: str) -> None:
    with pytest.raises(BackendCompilerFailed, match=words) as caught:
        asynchronous(function)(torch.ones(3))
    assert isinstance(caught.value.inner_exception, AsyncError)


def test_changing_sizes_are_refused() -> None:
    run = asynchronous(lambda x: x * 2)
    tt_torch.to_host(run(torch.ones(3)))
    with pytest.raises(BackendCompilerFailed, match="dynamic=False"):
        run(torch.ones(4))
