"""Det of ONNX models, as the nodes of all steps of an elimination."""

from __future__ import annotations

from math import prod

import numpy as np

from tt_torch.mlir.onnx_corrections import FLOATS, refused
from tt_torch.mlir.onnx_nodes import Nodes

LARGEST = 16  # rows of a matrix, each of which takes some nodes


def determinant(nodes: Nodes) -> bool:
    """The product of the pivots, each of which is the largest element of a column. An exchange of rows changes the
    sign. `a` has the rows and columns that are left, for all matrices."""
    x = nodes.operand(0)
    *outer, rows, _ = nodes.facts.shapes[x]
    if nodes.facts.types[x] not in FLOATS or rows > LARGEST:
        raise refused(nodes.node, f"expected matrices of floats with at most {LARGEST} rows")
    one = nodes.constant(np.ones([prod(outer), 1, 1]), like=x)
    a, result = nodes.op("Reshape", x, nodes.constant([prod(outer), rows, rows])), one
    for size in range(rows, 1, -1):
        a, pivot, sign = _step(nodes, a, size, one)
        result = nodes.op("Mul", nodes.op("Mul", result, pivot), sign)
    result = nodes.op("Mul", result, a) if rows else result
    return nodes.done(nodes.op("Reshape", result, nodes.constant(np.array(outer, np.int64))))


def _step(nodes: Nodes, a: str, size: int, one: str) -> tuple[str, str, str]:
    """The matrices without the pivot's row and column, the pivots, and the signs."""
    x, last = nodes.operand(0), nodes.constant([size])
    zero, begin, second = nodes.constant(0, like=x), nodes.constant([0]), nodes.constant([1])
    rows, columns = nodes.constant([1]), nodes.constant([2])
    column = nodes.op("Slice", a, begin, second, columns)
    place = nodes.op("ArgMax", nodes.op("Abs", column), axis=1)
    sign = nodes.op("Where", nodes.op("Equal", place, nodes.constant(0)), one, nodes.op("Neg", one))
    chosen = nodes.op("Equal", place, nodes.constant(np.arange(size).reshape(1, size, 1)))
    row = nodes.op("ReduceSum", nodes.op("Where", chosen, a, zero), rows)
    pivot = nodes.op("Slice", row, begin, second, columns)
    first = nodes.op("Slice", a, begin, second, rows)
    rest = nodes.op("Slice", nodes.op("Where", chosen, first, a), second, last, rows)
    factor = nodes.op("Div", nodes.op("Slice", rest, begin, second, columns), pivot)
    factor = nodes.op("Where", nodes.op("Equal", pivot, zero), zero, factor)  # then the column has only zeros
    rest, row = (nodes.op("Slice", value, second, last, columns) for value in (rest, row))
    return nodes.op("Sub", rest, nodes.op("Mul", factor, row)), pivot, sign
