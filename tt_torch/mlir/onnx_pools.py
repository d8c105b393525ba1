"""Nodes of ONNX models that reduce windows: pools of powers, and the places of the largest elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tt_torch.mlir.onnx_corrections import BYTES, FLOATS, Windows, windows_of
from tt_torch.mlir.onnx_nodes import Nodes

FIRST = 2  # the first dimension that windows have


def _windows(nodes: Nodes) -> list[Windows]:
    x = nodes.operand(0)
    return windows_of(nodes.node, {x: (nodes.facts.types[x], nodes.facts.shapes[x])})


def _padded(nodes: Nodes, x: str, windows: Sequence[Windows], fill: float) -> str:
    """The operand with the padding of its windows. `x` has its type, or another one that has the number `fill`."""
    pads = [0, 0, *(w.begin for w in windows), 0, 0, *(w.end for w in windows)]
    return nodes.op("Pad", x, nodes.constant(pads), nodes.op("CastLike", nodes.constant(np.float32(fill)), x))


def _pool(nodes: Nodes, op: str, x: str, results: Sequence[str], windows: Sequence[Windows]) -> None:
    """A pool of a value that has its padding already."""
    from onnx.helper import make_node

    sizes: dict[str, Any] = {"kernel_shape": [w.size for w in windows], "strides": [w.stride for w in windows]}
    dilations = [w.dilation for w in windows]
    nodes.made.append(make_node(op, [x], results, nodes.node.name, **sizes, dilations=dilations))


def _lp_pool(nodes: Nodes) -> bool:
    """The p-th root of the sum of p-th powers, which is their average times the size of the window."""
    x, windows, average = nodes.operand(0), _windows(nodes), f"{nodes.result}/average"
    _pool(nodes, "AveragePool", _padded(nodes, _powers(nodes), windows, 0), [average], windows)
    return _root(nodes, nodes.op("Mul", average, nodes.constant(prod(w.size for w in windows), like=x)))


def _global_lp_pool(nodes: Nodes) -> bool:
    dims = nodes.constant(np.arange(FIRST, len(nodes.facts.shapes[nodes.operand(0)])))
    return _root(nodes, nodes.op("ReduceSum", _powers(nodes), dims))


def _powers(nodes: Nodes) -> str:
    p = nodes.constant(float(nodes.given.get("p", 2)), like=nodes.operand(0))
    return nodes.op("Pow", nodes.op("Abs", nodes.operand(0)), p)


def _root(nodes: Nodes, total: str) -> bool:
    p = float(nodes.given.get("p", 2))
    return nodes.done(nodes.op("Pow", total, nodes.constant(1 / p, like=nodes.operand(0))))


def _max_pool(nodes: Nodes) -> bool:
    """The second result has the numbers of the largest elements, counted through the whole operand. torch-mlir counts
    in each plane by itself, with the padding."""
    from onnx import TensorProto

    x, kind, shape = nodes.operand(0), nodes.facts.types[nodes.operand(0)], nodes.facts.shapes[nodes.operand(0)]
    if len(nodes.node.output) == 1 or kind not in (*FLOATS, *BYTES):
        return False
    windows, largest, rest = _windows(nodes), f"{nodes.result}/largest", f"{nodes.result}/rest"
    values = x if kind in FLOATS else nodes.cast(x, TensorProto.FLOAT)
    _pool(nodes, "MaxPool", _padded(nodes, values, windows, -np.inf), [largest, rest], windows)
    size = shape[FIRST:]
    steps = [prod(size[:d] if nodes.given.get("storage_order", 0) else size[d + 1 :]) for d in range(len(size))]
    planes = np.arange(prod(shape[:FIRST])).reshape(*shape[:FIRST], *[1] * len(size)) * prod(size)
    terms = [nodes.constant(planes - sum(w.begin * step for w, step in zip(windows, steps, strict=True)))]
    for window, step in zip(windows[::-1], steps[::-1], strict=True):
        length = nodes.constant(window.length + window.begin + window.end)
        terms.append(nodes.op("Mul", nodes.op("Mod", rest, length), nodes.constant(step)))
        rest = nodes.op("Div", rest, length)
    nodes.named(1, nodes.total(terms))
    return nodes.done(largest if kind in FLOATS else nodes.cast(largest, kind))


POOLS: dict[str, Callable[[Nodes], bool]] = {
    "GlobalLpPool": _global_lp_pool,
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
}
