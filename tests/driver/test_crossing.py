"""A tensor that crosses between device subgraphs and the host moves once. A tensor that stays never moves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch.utils._pytree import tree_map

import tt_torch
from tt_torch.driver.executor import Executor
from tt_torch.driver.partition import HostFallbackWarning

X = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))


def past_the_host(x: torch.Tensor) -> torch.Tensor:
    y = x @ x.T
    return torch.linalg.eigvalsh(y) + y * 2


def past_the_host_as_a_view(x: torch.Tensor) -> torch.Tensor:
    y = (x @ x.T).exp()
    return torch.linalg.eigvalsh(y)[:, None] + y.t()


def returned_too(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x @ x.T
    return torch.linalg.eigvalsh(y) @ y, y


def twice_from_the_host(x: torch.Tensor) -> torch.Tensor:
    values = torch.linalg.eigvalsh(x @ x.T)
    again = torch.linalg.eigvalsh((values + 1).diag_embed())
    return again * 2 - values


@pytest.mark.parametrize(
    ("function", "to_host", "to_device"),
    [
        # To the host: results, and copies of tensors that stay. To the device: arguments, the input among them.
        (past_the_host, 2, 2),
        (past_the_host_as_a_view, 2, 2),
        (returned_too, 2, 2),
        (twice_from_the_host, 3, 3),
    ],
)
def test_each_tensor_is_moved_once_and_explain_knows_the_bytes(
    function: Callable[[torch.Tensor], object], to_host: int, to_device: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    explained = tt_torch.explain(function, X).graphs[0].moved
    moved: dict[str, list[int]] = {"host": [], "device": []}  # bytes of each tensor
    call, cpu, to = Executor.__call__, torch.Tensor.cpu, torch.Tensor.to

    def counting(self: Executor, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        results = call(self, inputs)
        kinds = self.compiled.kinds[: len(inputs)]
        given = zip(inputs, kinds, strict=True)
        moved["device"].extend(x.nbytes for x, kind in given if x.is_cpu and kind == "input")
        moved["host"].extend(x.nbytes for x in results if x.is_cpu)
        return results

    def to_cpu(x: torch.Tensor) -> torch.Tensor:
        moved["host"].append(x.nbytes)
        return cpu(x)

    def to_other(x: torch.Tensor, *arguments: object, **options: object) -> torch.Tensor:
        if arguments == (torch.device("tt"),):
            moved["device"].append(x.nbytes)
        return to(x, *arguments, **options)

    with pytest.warns(HostFallbackWarning):
        run = torch.compile(function, backend=tt_torch.backend)
        torch.testing.assert_close(run(X), function(X), rtol=1e-4, atol=1e-4)
    expected = function(X)
    monkeypatch.setattr(Executor, "__call__", counting)
    monkeypatch.setattr(torch.Tensor, "cpu", to_cpu)
    monkeypatch.setattr(torch.Tensor, "to", to_other)
    torch.testing.assert_close(run(X), expected, rtol=1e-4, atol=1e-4)
    assert (len(moved["host"]), len(moved["device"])) == (to_host, to_device)
    assert (sum(moved["host"]), sum(moved["device"])) == (explained.to_host, explained.to_device)


@pytest.mark.parametrize("function", [past_the_host, past_the_host_as_a_view, returned_too, twice_from_the_host])
def test_results_for_an_input_on_the_device_stay_there(function: Callable[[torch.Tensor], object]) -> None:
    expected = tree_map(lambda y: y.to("tt"), function(X))
    with pytest.warns(HostFallbackWarning):
        result = torch.compile(function, backend=tt_torch.backend)(X.to("tt"))
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)


NOT_LOADED = """
import sys, torch, tt_torch

def compiled(function, x):
    result = torch.compile(function, backend=tt_torch.backend)(x)
    assert torch.allclose(result, function(x), atol=1e-4)
    return "tt_torch.device" in sys.modules

x = torch.eye(3) + 0.1
print(compiled(lambda x: x + 1, x), compiled(lambda x: torch.linalg.eigvalsh(x + 1), x))
print(compiled(lambda x: torch.linalg.eigvalsh(x + 1) @ (x * 2), x))
print(compiled(lambda x: torch.linalg.eigvalsh((torch.linalg.eigvalsh(x) + 1).diag_embed()) * 2, x))
"""


def test_the_eager_device_is_loaded_only_if_a_tensor_stays_on_it() -> None:
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    run = [sys.executable, "-W", "ignore", "-c", NOT_LOADED]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "False", "True", "True"]
