"""Some ops raise an error for some values in eager PyTorch. They run on the device and raise the same error."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import tt_torch
from tt_torch.config import CompilerConfig

ON_DEVICE = {"compiler_config": CompilerConfig(fallback="error")}
GOOD = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
SINGULAR = torch.tensor([[1.0, 2.0], [2.0, 4.0]])


def _twice(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.inv(x) @ torch.linalg.cholesky(x)


def _by_decomposition(x: torch.Tensor) -> torch.Tensor:
    return torch.cholesky(x, upper=True) @ x


@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
@pytest.mark.parametrize("fn", [torch.linalg.inv, torch.linalg.cholesky, _twice, _by_decomposition])
def test_raises_as_eager(fn: Callable[[torch.Tensor], torch.Tensor]) -> None:
    compiled = torch.compile(fn, backend=tt_torch.backend, options=ON_DEVICE, fullgraph=True)
    torch.testing.assert_close(compiled(GOOD), fn(GOOD))
    bad = SINGULAR if fn in (torch.linalg.inv, _twice) else -GOOD
    with pytest.raises(torch.linalg.LinAlgError) as expected:
        fn(bad)
    with pytest.raises(torch.linalg.LinAlgError) as raised:
        compiled(bad)
    assert str(raised.value) == str(expected.value)
    torch.testing.assert_close(compiled(GOOD), fn(GOOD))


def test_parameters_keep_their_places() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(2, 2))
            self.bias = torch.nn.Parameter(torch.randn(2))

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv(x) @ self.weight + self.bias * y

    model = Model()
    compiled = torch.compile(model, backend=tt_torch.backend, options=ON_DEVICE)
    with torch.no_grad():
        for factor in (1.0, 2.0):
            arguments = (GOOD * factor, torch.full((2,), factor))
            torch.testing.assert_close(compiled(*arguments), model(*arguments))
            model.weight.add_(1)
            torch.testing.assert_close(compiled(*arguments), model(*arguments))
