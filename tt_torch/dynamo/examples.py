"""The examples of a captured graph's values, made again for other inputs, or after a change of the graph."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.fx import GraphModule, Interpreter, Node

from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.dynamo.types import Arguments, Result, Target
from tt_torch.torch_private.tensors import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from tt_torch.torch_private.tracing import GuardOnDataDependentSymNode

# Errors of a capture in which a shape, a condition or an index is a value of a tensor.
VALUES_DECIDE = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)


def with_examples(gm: GraphModule, inputs: Sequence[object]) -> GraphModule:
    """A copy of a captured graph whose examples have the sizes, the strides and the memory of these inputs.

    Raises one of VALUES_DECIDE if a size of an example is a value of a tensor.
    """
    gm, mode = copied(gm), FakeTensorMode()
    _run(gm, mode, [mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in inputs])
    return gm


def renew_examples(gm: GraphModule) -> None:
    """Makes the examples of a graph again, from those of its inputs, in whose sizes are no symbols.

    Raises one of VALUES_DECIDE if a size of an example is a value of a tensor.
    """
    given = [node.meta["example_value"] for node in gm.graph.find_nodes(op="placeholder")]
    modes = [x.fake_mode for x in given if isinstance(x, FakeTensor)]
    if modes:
        _run(gm, modes[0], given)


def _run(gm: GraphModule, mode: FakeTensorMode, inputs: Sequence[object]) -> None:
    run = _Examples(gm, mode)
    with mode, torch.set_grad_enabled(torch.is_grad_enabled()):  # the graph may change this setting
        run.run(*inputs)
    for node, value in run.values.items():
        node.meta["example_value"] = value


class _Examples(Interpreter):
    """Runs a graph and keeps the value of each node. A run that fails has changed no example."""

    def __init__(self, gm: GraphModule, mode: FakeTensorMode) -> None:
        super().__init__(gm)
        self._mode = mode
        self.values: dict[Node, Result] = {}

    def run_node(self, n: Node) -> Result:
        self.values[n] = super().run_node(n)
        return self.values[n]

    def get_attr(self, target: Target, args: Sequence[object], kwargs: Arguments) -> Result:
        value = super().get_attr(target, args, kwargs)
        return self._mode.from_tensor(value) if isinstance(value, torch.Tensor) else value
