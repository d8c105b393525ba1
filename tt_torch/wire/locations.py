"""Reads the text of an op's location: the FX nodes that the op came from, and the lines of Python.

An op from one node has `loc("relu_1: aten.relu.default"("model.py":12:0))`; an op from several nodes has
`loc(fused["a: …", "b: …"])`. Lines are listed from the innermost call outwards.
"""

from __future__ import annotations

import re

_NODE = re.compile(r'"([\w.]+): [\w.]+"')
_ONLY_NODE = re.compile(r'loc\("([\w.]+): (?:([\w.]+)")?')
_QUOTED = re.compile(r'"([^"]+)"(:\d)?')
_LINE = re.compile(r'"([^"]+\.py)":(\d+)')


def nodes(location: str) -> list[str]:
    """Names of the FX nodes. The result of a fused op is the value of the last node."""
    return _NODE.findall(location)


def names(location: str) -> list[str]:
    """All names: the names of FX nodes, and the names that other front-ends give to ops."""
    return [text.partition(": ")[0] for text, line in _QUOTED.findall(location) if not line]


def only_node(location: str) -> tuple[str, str]:
    """Name and target of the FX node of an op that came from exactly one node; ("", "") for other ops.

    The target is empty if it is no ATen op but a Python function such as `getitem`.
    """
    found = _ONLY_NODE.match(location)
    return (found[1], found[2] or "") if found else ("", "")


def lines(location: str) -> list[tuple[str, int]]:
    """File and line number of each line of Python, from the innermost call outwards."""
    return [(file, int(number)) for file, number in _LINE.findall(location)]
