"""Powers of integers by products. torch-mlir computes them in floats, which have 24 bits on the device."""

from __future__ import annotations

import numpy as np

from tt_torch.mlir.onnx_corrections import FLOATS
from tt_torch.mlir.onnx_nodes import Nodes

BITS = 6  # of exponents; the powers of 2 with larger ones do not fit into 64 bits


def power(nodes: Nodes) -> bool:
    """Integers to the power of integers, or of a known float that is one. A known exponent that is negative stays for
    torch-mlir, whose results are then 0, 1 and -1, and so does a float that is not known."""
    x, exponent = nodes.node.input
    if nodes.facts.types[x] in FLOATS:
        return False
    known = nodes.value(1)
    if known is not None and known.size == 1 and len(known.shape) <= len(nodes.facts.shapes[x]):
        number = float(known.item())
        return number in range(2**BITS) and nodes.done(_of_number(nodes, x, int(number)))
    return nodes.facts.types[exponent] not in FLOATS and nodes.done(_of_values(nodes, x, exponent))


def _of_number(nodes: Nodes, x: str, exponent: int) -> str:
    if exponent == 0:
        return nodes.op("Expand", nodes.constant(1, like=x), nodes.constant(nodes.facts.shapes[x]))
    half = _of_number(nodes, x, exponent // 2) if exponent > 1 else ""
    square = nodes.op("Mul", half, half) if half else ""
    if not square:
        return x
    return nodes.op("Mul", square, x) if exponent % 2 else square


def _of_values(nodes: Nodes, x: str, exponent: str) -> str:
    """For each bit of the exponent that is 1, the result is multiplied by a square of squares. Squares that no further
    bit needs are 1, so that they do not leave the range of integers."""
    from onnx import TensorProto

    one, zero, two = (nodes.constant(np.int64(number)) for number in (1, 0, 2))
    like_one = nodes.constant(1, like=x)
    given = nodes.cast(exponent, TensorProto.INT64)
    below = nodes.op("Less", given, zero)
    kept = nodes.op("Where", below, given, zero)
    result = nodes.op("Pow", nodes.op("Where", below, x, like_one), kept)
    rest = nodes.op("Where", below, zero, given)
    parity = nodes.op("Add", nodes.op("Mod", rest, two), nodes.constant(np.int64(2**BITS - 2)))
    rest = nodes.op("Where", nodes.op("Less", rest, nodes.constant(np.int64(2**BITS))), rest, parity)
    square = nodes.op("Where", nodes.op("Greater", rest, zero), x, like_one)
    for bit in range(BITS):
        odd = nodes.op("Equal", nodes.op("Mod", rest, two), one)
        result = nodes.op("Mul", result, nodes.op("Where", odd, square, like_one))
        if bit < BITS - 1:
            rest = nodes.op("Div", rest, two)
            needed = nodes.op("Where", nodes.op("Greater", rest, zero), square, like_one)
            square = nodes.op("Mul", needed, needed)
    return result
