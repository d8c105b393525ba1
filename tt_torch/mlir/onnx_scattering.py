"""Nodes of ONNX models that write elements to computed places and combine them with those that are there.

Each place is compared with the places of all updates, so that several updates may have the same place. An update whose
place does not exist changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import numpy as np

from tt_torch.mlir.onnx_corrections import FLOATS
from tt_torch.mlir.onnx_nodes import Nodes

MOST_PAIRS = 1 << 24  # the limit for pairs of a place and an update, which are compared


@dataclass(frozen=True)
class Reduction:
    """How updates of one place are combined: with each other, and with the element that is there."""

    together: str
    with_old: str
    neutral: float  # a number that changes no result


REDUCTIONS = {
    b"add": Reduction("ReduceSum", "Add", 0),
    b"mul": Reduction("ReduceProd", "Mul", 1),
    b"max": Reduction("ReduceMax", "Max", -np.inf),
    b"min": Reduction("ReduceMin", "Min", np.inf),
}


def _scatter_elements(nodes: Nodes) -> bool:
    """Updates go to places along one dimension. The other dimensions of the places may be shorter."""
    x, index, updates = nodes.node.input
    shape, places = nodes.facts.shapes[x], nodes.facts.shapes[index]
    axis = nodes.given.get("axis", 0) % len(shape)
    order = [*(i for i in range(len(shape)) if i != axis), axis]
    missing = [0 if i == axis else there - own for i, (own, there) in enumerate(zip(places, shape, strict=True))]
    count = prod(shape) * places[axis]
    if not _is_covered(nodes, count) or 0 in places:
        return False
    index = _from_start(nodes, index, shape[axis])
    if any(missing):  # the rest is filled with updates for a place that does not exist
        pads = nodes.constant([0] * len(shape) + missing)
        index = nodes.op("Pad", index, pads, nodes.constant(shape[axis]))
        updates = nodes.op("Pad", updates, pads)
    x, index, updates = (nodes.op("Transpose", value, perm=order) for value in (x, index, updates))
    made = _scattered(nodes, x, index, updates, shape[axis])
    return nodes.done(nodes.op("Transpose", made, perm=[order.index(i) for i in range(len(shape))]))


def _scatter_nd(nodes: Nodes) -> bool:
    """Places are along the first dimensions, which become one dimension. An update has the other dimensions."""
    x, index, updates = nodes.node.input
    shape, places = nodes.facts.shapes[x], nodes.facts.shapes[index]
    first, rest = shape[: places[-1]], shape[places[-1] :]
    count = prod(shape) * prod(places[:-1])
    if not _is_covered(nodes, count):
        return False
    index = nodes.op("Reshape", index, nodes.constant([prod(places[:-1]), len(first)]))
    parts = [nodes.op("Gather", index, nodes.constant(i), axis=1) for i in range(len(first))]
    steps = [prod(first[i + 1 :]) for i in range(len(first))]
    numbers = [
        nodes.op("Mul", _from_start(nodes, part, length), nodes.constant(step))
        for part, length, step in zip(parts, first, steps, strict=True)
    ]
    number = nodes.op("Unsqueeze", nodes.total(numbers), nodes.constant([0]))

    def last(value: str, length: int) -> str:
        return nodes.op("Transpose", nodes.op("Reshape", value, nodes.constant([length, prod(rest)])), perm=[1, 0])

    made = _scattered(nodes, last(x, prod(first)), number, last(updates, prod(places[:-1])), prod(first))
    return nodes.done(nodes.op("Reshape", nodes.op("Transpose", made, perm=[1, 0]), nodes.constant(shape)))


def _from_start(nodes: Nodes, index: str, length: int) -> str:
    """Places as 64-bit integers that count from the start. Negative places in `index` count from the end."""
    from onnx import TensorProto

    index = nodes.cast(index, TensorProto.INT64)
    from_end = nodes.op("Add", index, nodes.constant(length))
    return nodes.op("Where", nodes.op("Less", index, nodes.constant(0)), from_end, index)


def _scattered(nodes: Nodes, x: str, index: str, updates: str, length: int) -> str:
    """Updates go to places along the last dimension; `length` is its size in `x`. Integers are computed in int32, and
    unsigned ones of 32 and 64 bits in their own type."""
    from onnx import TensorProto
    from onnx.helper import tensor_dtype_to_np_dtype

    reduction, kind = REDUCTIONS[nodes.given["reduction"]], nodes.facts.types[nodes.operand(0)]
    row, wide = nodes.constant([-2]), (TensorProto.UINT32, TensorProto.UINT64)
    if kind in FLOATS:
        fill = nodes.constant(reduction.neutral, like=nodes.operand(0))
    else:
        inner = kind if kind in wide else TensorProto.INT32
        x, updates = (nodes.cast(value, inner) for value in (x, updates))
        limits = np.iinfo(tensor_dtype_to_np_dtype(inner))
        fill = nodes.constant(np.array(int(max(limits.min, min(reduction.neutral, limits.max))), limits.dtype))
    here = nodes.op("Equal", nodes.op("Unsqueeze", index, row), nodes.constant(np.arange(length)[:, None]))
    spread = nodes.op("Where", here, nodes.op("Unsqueeze", updates, row), fill)
    together = nodes.op(reduction.together, spread, nodes.constant([-1]), keepdims=0)
    return nodes.cast(nodes.op(reduction.with_old, x, together), kind)


def _is_covered(nodes: Nodes, count: int) -> bool:
    """Whether the node has a reduction of numbers, and there are not too many pairs."""
    from onnx import TensorProto

    numbers = nodes.facts.types[nodes.operand(0)] != TensorProto.BOOL
    return nodes.given.get("reduction", b"none") in REDUCTIONS and 0 < count <= MOST_PAIRS and numbers


def _tensor_scatter(nodes: Nodes) -> bool:
    """In each batch, the row of updates begins at its own place. In circular mode, it goes on at the first place."""
    from onnx import TensorProto

    x, updates, begin = nodes.operand(0), nodes.operand(1), nodes.operand(2)
    shape, length = nodes.facts.shapes[x], nodes.facts.shapes[updates]
    axis = nodes.given.get("axis", -2) % len(shape)
    places = nodes.constant(np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))]))
    if begin:
        column = nodes.constant([-1, *[1] * (len(shape) - 1)])
        begins = nodes.op("Reshape", nodes.cast(begin, TensorProto.INT64), column)
        places = nodes.op("Sub", places, begins)
    if nodes.given.get("mode", b"linear") == b"circular":
        places = nodes.op("Mod", places, nodes.constant(shape[axis]))
    last = nodes.constant(length[axis] - 1)
    here = nodes.op("And", nodes.op("GreaterOrEqual", places, nodes.constant(0)), nodes.op("LessOrEqual", places, last))
    number = nodes.op("Expand", nodes.op("Clip", places, nodes.constant(0), last), nodes.constant(shape))
    return nodes.done(nodes.op("Where", here, nodes.op("GatherElements", updates, number, axis=axis), x))


def _reverse_sequence(nodes: Nodes) -> bool:
    """Reverses the first elements along a dimension. The length of a sequence says how many elements these are."""
    from onnx import TensorProto

    x, lengths = nodes.node.input
    shape = nodes.facts.shapes[x]
    time, batch = nodes.given.get("time_axis", 0), nodes.given.get("batch_axis", 1)
    row = nodes.constant([-1 if i == batch else 1 for i in range(len(shape))])
    count = nodes.op("Reshape", nodes.cast(lengths, TensorProto.INT64), row)
    places = nodes.constant(np.arange(shape[time]).reshape([-1 if i == time else 1 for i in range(len(shape))]))
    opposite = nodes.op("Sub", nodes.op("Sub", count, nodes.constant(1)), places)
    number = nodes.op("Where", nodes.op("Less", places, count), opposite, places)
    return nodes.done(nodes.op("GatherElements", x, nodes.op("Expand", number, nodes.constant(shape)), axis=time))


SCATTERING: dict[str, Callable[[Nodes], bool]] = {
    "ReverseSequence": _reverse_sequence,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _tensor_scatter,
}
