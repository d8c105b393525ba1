"""Nodes of ONNX models that reduce windows: pools of powers, and the places of the largest elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from tt_torch.mlir.onnx_corrections import BYTES, FLOATS, Windows, refused, windows_of
from tt_torch.mlir.onnx_nodes import Nodes

FIRST = 2  # the first dimension that windows have
MOST_COUNTED = 2  # dimensions of windows in which torch-mlir counts
LARGEST_WINDOW = 128  # elements of a window, each of which takes some nodes


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
    in each plane by itself, with the padding, and not in three dimensions."""
    from onnx import TensorProto

    x, kind, shape = nodes.operand(0), nodes.facts.types[nodes.operand(0)], nodes.facts.shapes[nodes.operand(0)]
    order = nodes.given.pop("storage_order", 0)  # only of the numbers
    if len([name for name in nodes.node.output if name]) == 1:
        nodes.op("MaxPool", x, result=nodes.result, **nodes.given)
        return bool(order)
    if kind not in (*FLOATS, *BYTES):
        return False
    windows, largest, rest = _windows(nodes), f"{nodes.result}/largest", f"{nodes.result}/rest"
    values = x if kind in FLOATS else nodes.cast(x, TensorProto.FLOAT)
    padded, size = _padded(nodes, values, windows, -np.inf), shape[FIRST:]
    steps = [prod(size[:d] if order else size[d + 1 :]) for d in range(len(size))]
    planes = np.arange(prod(shape[:FIRST])).reshape(*shape[:FIRST], *[1] * len(size)) * prod(size)
    if len(size) > MOST_COUNTED:
        largest, numbers = _largest_by_slices(nodes, padded, windows, steps)
        nodes.named(1, nodes.op("Add", numbers, nodes.constant(planes)))
        return nodes.done(largest if kind in FLOATS else nodes.cast(largest, kind))
    _pool(nodes, "MaxPool", padded, [largest, rest], windows)
    terms = [nodes.constant(planes - sum(w.begin * step for w, step in zip(windows, steps, strict=True)))]
    for window, step in zip(windows[::-1], steps[::-1], strict=True):
        length = nodes.constant(window.length + window.begin + window.end)
        terms.append(nodes.op("Mul", nodes.op("Mod", rest, length), nodes.constant(step)))
        rest = nodes.op("Div", rest, length)
    nodes.named(1, nodes.total(terms))
    return nodes.done(largest if kind in FLOATS else nodes.cast(largest, kind))


def _max_unpool(nodes: Nodes) -> bool:
    """The elements at their numbers, and zeros elsewhere. A larger `output_shape` adds zeros behind them."""
    x, numbers, wanted = nodes.operand(0), nodes.operand(1), nodes.value(2)
    shape, size = nodes.facts.shapes[x], nodes.given["kernel_shape"]
    if nodes.operand(2) and wanted is None:
        return False
    pads, strides = nodes.given.get("pads", [0] * 2 * len(size)), nodes.given.get("strides", [1] * len(size))
    ends = [low + high for low, high in zip(pads[: len(size)], pads[len(size) :], strict=True)]
    windows = zip(shape[FIRST:], size, strides, ends, strict=True)
    spread = [*shape[:FIRST], *((n - 1) * stride + count - end for n, count, stride, end in windows)]
    rest = [0] * len(spread) if wanted is None else [int(n) - m for n, m in zip(wanted, spread, strict=True)]
    if min(rest) < 0:
        raise refused(nodes.node, f"expected an output_shape of at least {spread}, got {wanted}")
    flat = [nodes.op("Reshape", value, nodes.constant([-1])) for value in (numbers, x)]
    zeros = nodes.constant(np.zeros(prod(spread)), like=x)
    result = nodes.op("Reshape", nodes.op("ScatterElements", zeros, *flat, axis=0), nodes.constant(spread))
    return nodes.done(nodes.op("Pad", result, nodes.constant([0] * len(spread) + rest)))


def _largest_by_slices(nodes: Nodes, x: str, windows: Sequence[Windows], steps: Sequence[int]) -> tuple[str, str]:
    """The largest elements of windows and their numbers in a plane. The elements of all windows at the same place are
    compared with the largest ones so far. `x` has its padding, which is never the largest."""
    if prod(w.size for w in windows) > LARGEST_WINDOW:
        raise refused(nodes.node, f"expected a window of at most {LARGEST_WINDOW} elements, to find their numbers")
    dims = nodes.constant(np.arange(FIRST, FIRST + len(windows)))
    strides = nodes.constant([w.stride for w in windows])
    best, numbers = "", ""
    for place in itertools.product(*(range(w.size) for w in windows)):
        begins = [p * w.dilation for p, w in zip(place, windows, strict=True)]
        ends = [b + (w.count - 1) * w.stride + 1 for b, w in zip(begins, windows, strict=True)]
        new = nodes.op("Slice", x, nodes.constant(begins), nodes.constant(ends), dims, strides)
        at = [b - w.begin + np.arange(w.count) * w.stride for b, w in zip(begins, windows, strict=True)]
        number = reduce(np.add.outer, [a * step for a, step in zip(at, steps, strict=True)])
        inside = reduce(np.logical_and.outer, [(a >= 0) & (a < w.length) for a, w in zip(at, windows, strict=True)])
        own = nodes.constant(number[None, None])
        if not best:
            best, numbers, known = new, nodes.op("Expand", own, nodes.op("Shape", new)), inside
            continue
        larger = nodes.op("Or", nodes.op("Greater", new, best), nodes.constant((inside & ~known)[None, None]))
        larger = nodes.op("And", larger, nodes.constant(inside[None, None]))
        best, numbers = nodes.op("Where", larger, new, best), nodes.op("Where", larger, own, numbers)
        known = known | inside
    return best, numbers


POOLS: dict[str, Callable[[Nodes], bool]] = {
    "GlobalLpPool": _global_lp_pool,
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "MaxUnpool": _max_unpool,
}
