"""The rules for padding: PyTorch runs graphs on padded inputs, and the results equal the results without padding.

Each function takes x of shape (batch, length, 16). The padding of x is filled with numbers that no result may have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from bucket_table import REFUSED, RIGHT
from torch.fx import GraphModule
from torch.utils._pytree import tree_leaves

from tt_torch.driver.buckets import BucketedProgram
from tt_torch.dynamo.buckets import symbols_of
from tt_torch.errors import BucketError
from tt_torch.torch_private.tracing import make_fx

GARBAGE = 777.0


class Padded:
    """A function of x, traced with symbolic sizes. `dims` are its padded dimensions.

    The batch is padded to 4, and the length to 8 or 16.
    """

    def __init__(self, function: Callable[[torch.Tensor], Any], dims: Sequence[int] = (1,)) -> None:
        self.function = function
        with torch.no_grad():
            gm = make_fx(lambda x: list(tree_leaves(function(x))), tracing_mode="symbolic")(torch.rand(2, 5, 16) - 0.5)
        gm.graph.eliminate_dead_code()
        next(iter(gm.graph.nodes)).meta["source"] = "x"
        symbols = symbols_of(gm, tuple((f"x.{dim}", {0: (4,), 1: (8, 16)}[dim]) for dim in dims))
        self.dims, self.programs = dims, 0
        self.run = BucketedProgram(gm, ["input"], symbols, {}, self.compile, {})

    def compile(self, graph: GraphModule, roles: Sequence[str]) -> Callable[[list[torch.Tensor]], Any]:
        self.programs += 1
        assert list(roles) == ["input"] * (1 + len(self.dims))  # x and its lengths

        def run(inputs: list[torch.Tensor]) -> Any:
            x, *lengths = inputs
            assert x.shape[1] in (8, 16) and x.shape[1] - lengths[-1] < 8
            for dim, length in zip(self.dims, lengths, strict=True):
                x.narrow(dim, int(length), x.shape[dim] - int(length)).fill_(GARBAGE)
            return graph(x, *lengths)

        return run

    def check(self, x: torch.Tensor) -> None:
        expected = tree_leaves(self.function(x))
        torch.testing.assert_close(self.run([x]), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", RIGHT)
def test_results_are_those_without_padding(name: str) -> None:
    padded = Padded(RIGHT[name])
    for length in (4, 8, 12, 5):
        padded.check(torch.rand(2, length, 16) - (0 if name == "element-wise" else 0.5))
    assert padded.programs == 2


@pytest.mark.parametrize(("op", "reason", "function"), REFUSED)
def test_an_op_that_would_mix_in_padding_is_refused_by_name(op: str, reason: str, function: Any) -> None:
    with pytest.raises(BucketError) as caught:
        Padded(function)
    assert caught.value.op.startswith(op)
    assert reason in str(caught.value)


# Functions of x, whose batch and length are padded.
OF_BOTH: list[Callable[[torch.Tensor], Any]] = [
    lambda x: (x * (x.shape[0] * x.shape[1]), x + x.shape[0] * 3, x.sum((0, 1)), x.mean((0, 1)), x.sum(0), x.mean(1)),
    lambda x: (x.flatten(0, 1), x.flatten(0, 1).sum(0), x.flatten(0, 1).mean(0), x.transpose(0, 1).flatten(0, 1)),
    lambda x: (x.flatten(), x.flatten(0, 1).amax(0), x.flatten(0, 1).expand(2, -1, -1), x.amin(), x.prod(0)),
    lambda x: (x @ x.mT, x.mT @ x, x.transpose(0, 1) @ x.permute(1, 2, 0), x.softmax(0), x.flatten(0, 1).softmax(0)),
    lambda x: (x[-1], x[:, -1], x[-1, -1], x[0], x.flip(0, 1), x.cumsum(0), x.argmax(0), x.unsqueeze(1)),
]


@pytest.mark.parametrize("function", OF_BOTH)
def test_two_padded_dimensions(function: Callable[[torch.Tensor], Any]) -> None:
    padded = Padded(function, (0, 1))
    for batch, length in ((2, 5), (4, 8), (3, 12), (2, 16), (4, 4)):
        padded.check(torch.rand(batch, length, 16) - 0.5)
    assert padded.programs == 2
