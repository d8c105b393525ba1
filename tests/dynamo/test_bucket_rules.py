"""The rules for padding: graphs are run on padded inputs by PyTorch, and give the results of the sizes without padding.

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

from tt_torch.dynamo.buckets import BucketedProgram, symbols_of
from tt_torch.errors import BucketError
from tt_torch.torch_private.tracing import make_fx

GARBAGE = 777.0


class Padded:
    """A function of x, traced with symbolic sizes, that runs with the length padded to 8 or 16."""

    def __init__(self, function: Callable[[torch.Tensor], Any], buckets: Sequence[int] = (8, 16)) -> None:
        self.function = function
        with torch.no_grad():
            gm = make_fx(lambda x: list(tree_leaves(function(x))), tracing_mode="symbolic")(torch.rand(2, 5, 16) - 0.5)
        gm.graph.eliminate_dead_code()
        next(iter(gm.graph.nodes)).meta["source"] = "x"
        symbols = symbols_of(gm, (("x.1", tuple(buckets)),))
        self.programs = 0
        self.run = BucketedProgram(gm, ["input"], symbols, {}, self.compile, {})

    def compile(self, graph: GraphModule, roles: Sequence[str]) -> Callable[[list[torch.Tensor]], Any]:
        self.programs += 1
        assert list(roles) == ["input"] * 2  # x and its length

        def run(inputs: list[torch.Tensor]) -> Any:
            x, length = inputs
            assert x.shape[1] in (8, 16) and x.shape[1] - length < 8
            x[:, length:] = GARBAGE
            return graph(x, length)

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
