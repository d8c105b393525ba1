"""Replaces sequences of ONNX models by their elements. The place of each element is known while compiling.

`Facts.sequences` has the names of the elements of each sequence. The nodes on sequences become nodes on elements.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tt_torch.mlir.onnx_corrections import refused
from tt_torch.mlir.onnx_nodes import Nodes


def _construct(nodes: Nodes) -> bool:
    nodes.facts.sequences[nodes.result] = list(nodes.node.input)
    return True


def _insert(nodes: Nodes) -> bool:
    elements = _elements(nodes)
    place = _place(nodes, 2, len(elements), len(elements) + 1)
    nodes.facts.sequences[nodes.result] = [*elements[:place], nodes.operand(1), *elements[place:]]
    return True


def _erase(nodes: Nodes) -> bool:
    elements = _elements(nodes)
    place = _place(nodes, 1, len(elements) - 1, len(elements))
    nodes.facts.sequences[nodes.result] = [*elements[:place], *elements[place + 1 :]]
    return True


def _at(nodes: Nodes) -> bool:
    elements = _elements(nodes)
    return nodes.done(elements[_place(nodes, 1, 0, len(elements))])


def _length(nodes: Nodes) -> bool:
    return nodes.done(nodes.constant(len(_elements(nodes))))


def _concatenate(nodes: Nodes) -> bool:
    """Concatenates the elements along one of their dimensions, or along a new one."""
    elements, axis = _elements(nodes), nodes.given["axis"]
    if not elements:
        raise refused(nodes.node, "the sequence has no element")
    if nodes.given.get("new_axis", 0):
        elements = [nodes.op("Unsqueeze", one, nodes.constant([axis])) for one in elements]
    return nodes.done(nodes.op("Concat", *elements, axis=axis))


def _split(nodes: Nodes) -> bool:
    """Splits a tensor into parts of given sizes, into parts of one size, or into single rows. The last part of one size
    may be smaller."""
    x, sizes, shape = nodes.operand(0), nodes.value(1), nodes.facts.shapes.get(nodes.operand(0))
    if shape is None:
        raise refused(nodes.node, "the sizes of its operand must be known")
    axis = nodes.given.get("axis", 0) % len(shape)
    if nodes.operand(1) and sizes is None:
        raise refused(nodes.node, "the sizes of its parts must be known")
    if sizes is None or sizes.ndim == 0:
        each = 1 if sizes is None else int(sizes)
        ends = [*range(each, shape[axis], each), shape[axis]]
    else:
        ends = np.cumsum(sizes).tolist()
    parts, begin = [], 0
    for end in ends:
        part = nodes.op("Slice", x, *(nodes.constant([number]) for number in (begin, end, axis)))
        single = sizes is None and not nodes.given.get("keepdims", 1)
        parts.append(nodes.op("Squeeze", part, nodes.constant([axis])) if single else part)
        begin = end
    nodes.facts.sequences[nodes.result] = parts
    return True


def _elements(nodes: Nodes) -> list[str]:
    if nodes.operand(0) not in nodes.facts.sequences:
        raise refused(nodes.node, "the elements of its sequence are not known while compiling")
    return nodes.facts.sequences[nodes.operand(0)]


def _place(nodes: Nodes, number: int, default: int, count: int) -> int:
    """The place that an operand gives; a negative place counts from the end. Raises UnsupportedOpError for a place that
    is not known, or that does not exist because it is not below `count`."""
    given = nodes.value(number)
    if nodes.operand(number) and given is None:
        raise refused(nodes.node, "the place in its sequence must be known")
    place = default if given is None else int(given.reshape(()))
    length = len(_elements(nodes))
    if not -length <= place < count:
        raise refused(nodes.node, f"there is no place {place} in a sequence of length {length}")
    return place + length if place < 0 else place


SEQUENCES: dict[str, Callable[[Nodes], bool]] = {
    "ConcatFromSequence": _concatenate,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _construct,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
