"""Nodes of ONNX models on quantized numbers, written as nodes on floats and 32-bit integers.

A quantized number q stands for (q - zero point) * scale. A zero point that is left out is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from tt_torch.mlir.onnx_nodes import Nodes

# The largest number of products of 8-bit numbers in a sum. The sum stays below 2^24, so float32 holds it exactly.
MOST_PRODUCTS = (1 << 24) // 255**2


def _quantize(nodes: Nodes) -> bool:
    from onnx import TensorProto

    x, zero = nodes.operand(0), nodes.operand(2)
    given = nodes.given.get("output_dtype", 0) or TensorProto.UINT8
    kind = nodes.facts.types[zero] if zero else given
    floats = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
    other = nodes.given.get("precision", 0) not in (0, TensorProto.FLOAT)  # of the quotient
    if other or not _is_narrow(kind) or nodes.facts.types[x] not in floats:
        return False
    quotient = nodes.op("Div", nodes.cast(x, TensorProto.FLOAT), _spread(nodes, nodes.operand(1), TensorProto.FLOAT))
    offset = _spread(nodes, zero, TensorProto.FLOAT) if zero else ""
    return nodes.done(_rounded(nodes, quotient, offset, kind))


def _rounded(nodes: Nodes, x: str, offset: str, kind: int) -> str:
    """Rounds to the nearest integers, with ties to even ones, and adds the zero point. Results are clipped to the
    limits of the type."""
    from onnx.helper import tensor_dtype_to_np_dtype

    whole = nodes.op("Round", x)
    moved = nodes.op("Add", whole, offset) if offset else whole
    limits = np.iinfo(tensor_dtype_to_np_dtype(kind))
    bounds = (nodes.constant(np.float32(limit)) for limit in (limits.min, limits.max))
    return nodes.cast(nodes.op("Clip", moved, *bounds), kind)


def _dequantize(nodes: Nodes) -> bool:
    from onnx import TensorProto

    x, scale = nodes.operand(0), nodes.operand(1)
    kind = nodes.facts.types[x]
    if not _is_narrow(kind) and kind != TensorProto.INT32:
        return False
    result = nodes.given.get("output_dtype", 0) or nodes.facts.types[scale]
    whole = nodes.cast(x, TensorProto.INT32)
    if nodes.operand(2):
        whole = nodes.op("Sub", whole, _spread(nodes, nodes.operand(2), TensorProto.INT32))
    product = nodes.op("Mul", nodes.cast(whole, TensorProto.FLOAT), _spread(nodes, scale, TensorProto.FLOAT))
    return nodes.done(nodes.cast(product, result))


def _spread(nodes: Nodes, name: str, kind: int) -> str:
    """Scales or zero points, cast to the type `kind`, in a shape that broadcasts to the first operand. There is one for
    all elements, one for each place along the axis, or one for each block along the axis."""
    shape, own = nodes.facts.shapes[nodes.operand(0)], nodes.facts.shapes[name]
    axis = nodes.given.get("axis", 1) % max(len(shape), 1)
    value = nodes.cast(name, kind)
    if block := nodes.given.get("block_size", 0):
        return nodes.op("Gather", value, nodes.constant(np.arange(shape[axis]) // block), axis=axis)
    if len(own) != 1 or own == [1]:
        return nodes.op("Reshape", value, nodes.constant(np.zeros(0, np.int64))) if own == [1] else value
    return nodes.op("Reshape", value, nodes.constant([own[0] if i == axis else 1 for i in range(len(shape))]))


def _matmul(nodes: Nodes) -> bool:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = nodes.node.input
    kind = nodes.facts.types[y_zero]
    narrow = all(_is_8_bit(nodes.facts.types[name]) for name in (a, b, y_zero))
    if not narrow or nodes.facts.shapes[a][-1] > MOST_PRODUCTS:
        return False
    rows, columns = [-1, 1], [-1]
    left = _shifted(nodes, a, _along(nodes, a_zero, rows))
    right = _shifted(nodes, b, _along(nodes, b_zero, columns))
    scale = nodes.op("Mul", _float(nodes, _along(nodes, a_scale, rows)), _float(nodes, _along(nodes, b_scale, columns)))
    scale = nodes.op("Div", scale, _float(nodes, _along(nodes, y_scale, [])))
    product = nodes.op("Mul", nodes.op("MatMul", left, right), scale)
    return nodes.done(_rounded(nodes, product, _float(nodes, _along(nodes, y_zero, [])), kind))


def _integer_matmul(nodes: Nodes) -> bool:
    """The product is computed in floats, which are exact for a few of its terms at a time."""
    from onnx import TensorProto

    a, b = nodes.operand(0), nodes.operand(1)
    shapes = [nodes.facts.shapes[name] for name in (a, b)]
    if not all(shapes):
        return False
    left = _shifted(nodes, a, _along(nodes, nodes.operand(2), [-1, 1]))
    right = _shifted(nodes, b, _along(nodes, nodes.operand(3), [-1]))
    length, sums = shapes[0][-1], []
    for first in range(0, max(length, 1), MOST_PRODUCTS):
        parts = [left, right]
        if length > MOST_PRODUCTS:
            ends = [nodes.constant([number]) for number in (first, min(first + MOST_PRODUCTS, length))]
            axes = (len(shapes[0]) - 1, max(len(shapes[1]) - 2, 0))
            parts = [nodes.op("Slice", x, *ends, nodes.constant([axis])) for x, axis in zip(parts, axes, strict=True)]
        sums.append(nodes.cast(nodes.op("MatMul", *parts), TensorProto.INT32))
    return nodes.done(nodes.total(sums))


def _integer_convolution(nodes: Nodes) -> bool:
    x, w, x_zero, w_zero = (nodes.operand(i) for i in range(4))
    sums = _convolved(nodes, (x, x_zero), (w, w_zero))
    return bool(sums) and nodes.done(sums)


def _convolution(nodes: Nodes) -> bool:
    """The bias is added to sums of products, so its scale is the product of the scales of both operands."""
    from onnx import TensorProto

    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = (nodes.operand(i) for i in range(9))
    kind = nodes.facts.types[y_zero]
    if not all(_is_8_bit(nodes.facts.types[name]) for name in (x, w, y_zero)):
        return False
    if not (sums := _convolved(nodes, (x, x_zero), (w, w_zero))):
        return False
    columns = [-1, *[1] * (len(nodes.facts.shapes[w]) - 2)]
    if bias:
        sums = nodes.op("Add", sums, nodes.op("Reshape", bias, nodes.constant(columns)))
    scale = nodes.op("Mul", _float(nodes, _along(nodes, x_scale, [])), _float(nodes, _along(nodes, w_scale, columns)))
    scale = nodes.op("Div", scale, _float(nodes, _along(nodes, y_scale, [])))
    product = nodes.op("Mul", nodes.cast(sums, TensorProto.FLOAT), scale)
    return nodes.done(_rounded(nodes, product, _float(nodes, _along(nodes, y_zero, [])), kind))


def _convolved(nodes: Nodes, x: tuple[str, str], w: tuple[str, str]) -> str:
    """The convolution of numbers minus their zero points, in int32; "" if the kernel or a group is too large.

    Padding stands for the zero point, so it is zero after the subtraction. The convolution is computed in floats, for
    a few channels at a time.
    """
    from onnx import TensorProto

    channels, *kernel = nodes.facts.shapes[w[0]][1:]
    most = MOST_PRODUCTS // prod(kernel)
    if not most or (channels > most and nodes.given.get("group", 1) > 1):
        return ""
    image = _shifted(nodes, x[0], _along(nodes, x[1], []))
    filters = _shifted(nodes, w[0], _along(nodes, w[1], [-1, *[1] * (len(kernel) + 1)]))
    sums = []
    for first in range(0, channels, most):
        parts = [image, filters]
        if channels > most:
            bounds = [nodes.constant([number]) for number in (first, min(first + most, channels), 1)]
            parts = [nodes.op("Slice", value, *bounds) for value in parts]
        sums.append(nodes.cast(nodes.op("Conv", *parts, **nodes.given), TensorProto.INT32))
    return nodes.total(sums)


def _along(nodes: Nodes, name: str, shape: list[int]) -> str:
    """Scales or zero points. Several along one dimension get the shape `shape`, and a single one becomes a scalar. The
    result is "" if they are left out."""
    own = nodes.facts.shapes[name] if name else [0, 0]
    one = own in ([], [1])
    if not name or (len(own) != 1 and not one):
        return name
    return nodes.op("Reshape", name, nodes.constant(np.array([] if one else shape, np.int64)))


def _float(nodes: Nodes, name: str) -> str:
    from onnx import TensorProto

    return nodes.cast(name, TensorProto.FLOAT)


def _shifted(nodes: Nodes, x: str, zero: str) -> str:
    """The numbers minus the zero point, as floats."""
    return nodes.op("Sub", _float(nodes, x), _float(nodes, zero)) if zero else _float(nodes, x)


def _is_8_bit(kind: int) -> bool:
    from onnx import TensorProto

    return kind in (TensorProto.INT8, TensorProto.UINT8)


def _is_narrow(kind: int) -> bool:
    from onnx import TensorProto

    return _is_8_bit(kind) or kind in (TensorProto.INT16, TensorProto.UINT16)


QUANTIZED: dict[str, Callable[[Nodes], bool]] = {
    "ConvInteger": _integer_convolution,
    "DequantizeLinear": _dequantize,
    "MatMulInteger": _integer_matmul,
    "QLinearConv": _convolution,
    "QLinearMatMul": _matmul,
    "QuantizeLinear": _quantize,
}
