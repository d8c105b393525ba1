"""The `Scan` of opset 8 as plain nodes of this opset, because ONNX's converter drops its batch.

Its states and scanned values have a batch as their first dimension, and scanned values have the steps as their second
one. Each member of the batch is scanned by itself. Later opsets have no batch: `onnx_folding.py` unrolls them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tt_torch.mlir.onnx_folding import MOST_NODES, constant, first_result, renamed
from tt_torch.mlir.onnx_nodes import Nodes

if TYPE_CHECKING:
    import onnx

WITH_A_BATCH = 8  # the only opset in which Scan has one


def old_scan(nodes: Nodes) -> bool:
    """Scans with as many steps for each member of the batch. Other numbers of steps are the first operand."""
    if nodes.facts.opset != WITH_A_BATCH or nodes.operand(0):
        return False
    body, count = nodes.given["body"], nodes.given["num_scan_inputs"]
    states, scanned = nodes.node.input[1:-count], nodes.node.input[-count:]
    lengths = {tuple(nodes.facts.shapes[name][:2]) for name in scanned}
    ((batch, steps),) = lengths if len(lengths) == 1 else [(0, 0)]
    if not 0 < batch * steps * len(body.node) <= MOST_NODES:
        return False
    backwards = nodes.given.get("directions", [0] * count)
    results: list[list[str]] = [[] for _ in body.output]
    for member in range(batch):
        carried = [_part(nodes, name, member) for name in states]
        rows = [_part(nodes, name, member) for name in scanned]
        for each, name in zip(results, _scanned(nodes, body, carried, rows, backwards, steps), strict=True):
            each.append(name)
    for number, each in enumerate(results):
        nodes.named(number, _stacked(nodes, each))
    return True


def _scanned(
    nodes: Nodes, body: onnx.GraphProto, carried: list[str], rows: Sequence[str], backwards: Sequence[int], steps: int
) -> list[str]:
    """Writes all steps for one member of the batch. Returns the names of its last states and of its stacked results."""
    made: list[list[str]] = [[] for _ in body.output[len(carried) :]]
    for step in range(steps):
        pairs = zip(rows, backwards, strict=True)
        given = [_part(nodes, name, steps - 1 - step if turned else step) for name, turned in pairs]
        results = _body(nodes, body, [*carried, *given])
        carried = results[: len(carried)]
        for each, name in zip(made, results[len(carried) :], strict=True):
            each.append(name)
    return [*carried, *(_stacked(nodes, each) for each in made)]


def _body(nodes: Nodes, body: onnx.GraphProto, arguments: Sequence[str]) -> list[str]:
    """Writes the nodes of a step, and returns the names of its results."""
    from onnx.numpy_helper import to_array

    own = [x.name for x in body.initializer] + [name for node in body.node for name in node.output if name]
    prefix = f"{first_result(nodes.node)}/{len(nodes.made)}/"
    names = {name: prefix + name for name in own} | dict(zip((x.name for x in body.input), arguments, strict=True))
    nodes.made += [constant(names[x.name], to_array(x), nodes.node.name) for x in body.initializer]
    nodes.made += [renamed(node, names) for node in body.node]
    return [names.get(x.name, x.name) for x in body.output]


def _part(nodes: Nodes, name: str, number: int) -> str:
    """An element of the first dimension."""
    return nodes.op("Gather", name, nodes.constant(np.array(number)), axis=0)


def _stacked(nodes: Nodes, parts: Sequence[str]) -> str:
    """The parts along a new first dimension. In this opset, the axes of Unsqueeze are an attribute."""
    return nodes.op("Concat", *(nodes.op("Unsqueeze", part, axes=[0]) for part in parts), axis=0)
