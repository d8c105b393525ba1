"""What the text of an op's location says: the FX nodes that the op came from, and the lines of Python.

An op of one node has `loc("relu_1: aten.relu.default"("model.py":12:0))`, one of several `loc(fused["a: …", "b: …"])`.
Lines are listed from the innermost call out.
"""

from __future__ import annotations

import re

_NODE = re.compile(r'"([\w.]+): [\w.]+"')
_ONLY_NODE = re.compile(r'loc\("([\w.]+): (?:([\w.]+)")?')
_LINE = re.compile(r'"([^"]+\.py)":(\d+)')


def nodes(location: str) -> list[str]:
    """Names of the FX nodes; an op that was fused has the value of the last one."""
    return _NODE.findall(location)


def only_node(location: str) -> tuple[str, str]:
    """Name and target of the FX node of an op that came from one; ("", "") for all others. The target is empty where
    it is no ATen op but a function of Python, such as `getitem`."""
    found = _ONLY_NODE.match(location)
    return (found[1], found[2] or "") if found else ("", "")


def lines(location: str) -> list[tuple[str, int]]:
    """File and number of each line of Python."""
    return [(file, int(number)) for file, number in _LINE.findall(location)]
