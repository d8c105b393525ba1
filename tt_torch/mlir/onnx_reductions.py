"""Nodes of ONNX models that reduce dimensions, in the forms for which torch-mlir fails or has other results."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tt_torch.mlir.onnx_corrections import FLOATS
from tt_torch.mlir.onnx_nodes import Nodes


def _reduction(nodes: Nodes) -> bool:
    return _of_a_scalar(nodes) or _without_axes(nodes) or _of_single_elements(nodes)


def _of_single_elements(nodes: Nodes) -> bool:
    """Dimensions of one element that stay are dropped and made again. torch-mlir crashes for a norm or a logarithm
    along them, whose result has the shape of its operand."""
    shape, axes, given = nodes.facts.shapes[nodes.operand(0)], nodes.value(1), dict(nodes.given)
    if axes is None or any(shape[axis] != 1 for axis in axes) or not given.pop("keepdims", 1):
        return False
    reduced = nodes.op(nodes.node.op_type, nodes.operand(0), nodes.node.input[1], **given, keepdims=0)
    return nodes.done(nodes.op("Reshape", reduced, nodes.constant(np.array(shape, np.int64))))


def _of_a_scalar(nodes: Nodes) -> bool:
    """A scalar is reduced as a vector of one element. torch-mlir crashes for scalars."""
    x = nodes.operand(0)
    if nodes.facts.shapes[x]:
        return False
    given = {name: value for name, value in nodes.given.items() if name != "axes"}
    reduced = nodes.op(nodes.node.op_type, nodes.op("Reshape", x, nodes.constant([1])), **given)
    return nodes.done(nodes.op("Reshape", reduced, nodes.constant(np.zeros(0, np.int64))))


def _without_axes(nodes: Nodes) -> bool:
    """An empty list of dimensions means what no list means. torch-mlir crashes for it."""
    axes = nodes.value(1)
    if axes is None or axes.size:
        return False
    return nodes.done(nodes.op(nodes.node.op_type, nodes.operand(0), **nodes.given))


def _largest_or_smallest(nodes: Nodes) -> bool:
    """Those of booleans are computed on int32."""
    from onnx import TensorProto

    if nodes.facts.types[nodes.operand(0)] != TensorProto.BOOL:
        return _of_a_scalar(nodes)
    numbers = nodes.cast(nodes.operand(0), TensorProto.INT32)
    reduced = nodes.op(nodes.node.op_type, numbers, *nodes.node.input[1:], **nodes.given)
    return nodes.done(nodes.cast(reduced, TensorProto.BOOL))


def _mean(nodes: Nodes) -> bool:
    """The mean of integers is their sum, divided by their number and rounded toward zero."""
    from onnx import TensorProto

    x, kind = nodes.operand(0), nodes.facts.types[nodes.operand(0)]
    if kind in FLOATS:
        return mean_in_float32(nodes) or _reduction(nodes)
    shape, axes, given = nodes.facts.shapes[x], nodes.value(1), dict(nodes.given)
    chosen = given.pop("axes", [] if axes is None else axes.tolist())
    if (nodes.operand(1) and axes is None) or 0 in shape:
        return False
    if not shape or (not chosen and given.get("noop_with_empty_axes", 0)):
        return nodes.done(x)
    count = prod(shape[axis] for axis in chosen or range(len(shape)))
    wide = nodes.cast(x, kind if kind == TensorProto.UINT64 else TensorProto.INT64)
    total = nodes.op("ReduceSum", wide, *([nodes.constant(chosen)] if chosen else []), **given)
    number = nodes.constant(np.array(count, np.uint64 if kind == TensorProto.UINT64 else np.int64))
    return nodes.done(nodes.cast(nodes.op("Div", total, number), kind))


def mean_in_float32(nodes: Nodes) -> bool:
    """A mean, or a norm, of more elements than float16 can count. torch-mlir would divide by an infinite number."""
    from onnx import TensorProto
    from onnx.helper import make_node

    x, types = nodes.node.input[0], nodes.facts.types
    if types[x] != TensorProto.FLOAT16 or prod(nodes.facts.shapes[x]) <= np.finfo(np.float16).max:
        return False
    halves = {name for name in nodes.node.input if types.get(name) == TensorProto.FLOAT16}
    operands = [nodes.cast(name, TensorProto.FLOAT) if name in halves else name for name in nodes.node.input]
    wide = f"{nodes.result}/wide"
    results = [wide, *nodes.node.output[1:]]
    nodes.made.append(make_node(nodes.node.op_type, operands, results, nodes.node.name, **nodes.given))
    return nodes.done(nodes.cast(wide, TensorProto.FLOAT16))


def _logarithm(nodes: Nodes) -> bool:
    """The logarithm of a sum of integers is computed in float32."""
    from onnx import TensorProto

    kind = nodes.facts.types[nodes.operand(0)]
    if kind in FLOATS:
        return _reduction(nodes)
    numbers = nodes.cast(nodes.operand(0), TensorProto.FLOAT)
    return nodes.done(nodes.cast(nodes.op(nodes.node.op_type, numbers, *nodes.node.input[1:], **nodes.given), kind))


REDUCTIONS: dict[str, Callable[[Nodes], bool]] = {
    "LayerNormalization": mean_in_float32,
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceProd", "ReduceSumSquare"), _reduction),
    "ReduceLogSum": _logarithm,
    **dict.fromkeys(("ReduceMax", "ReduceMin"), _largest_or_smallest),
    "ReduceMean": _mean,
    "ReduceSum": _reduction,
}
