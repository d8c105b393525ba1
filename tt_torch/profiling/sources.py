"""Finds where ops come from in the user's program: the module and the line.

A binary names the FX nodes of each op (`wire/locations.py`). The graph from which it was compiled has the module and
the stack of each node; this is read here, from the nodes' metadata.
"""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass

from torch.fx import Graph, Node

from tt_torch import user_code
from tt_torch.dynamo.interface import module_path
from tt_torch.wire import locations

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass(frozen=True)
class Source:
    """Where an FX node comes from.

    `target` is the ATen op. `module` is a path as in `named_modules()`, and empty for the model itself; `module_class`
    is empty if the op is called outside of modules. `file` is empty and `line` is 0 if no line is known.
    """

    target: str = ""
    module: str = ""
    module_class: str = ""
    file: str = ""
    line: int = 0
    code: str = ""


def sources(graph: Graph) -> dict[str, Source]:
    """The source of each op of a graph, by the name of the node. Reads the files that the stacks name."""
    return {node.name: _source(node) for node in graph.nodes if node.op == "call_function"}


def of_location(location: str) -> Source:
    """The source that a location in a binary gives: the ATen op and the user's line, but no module. If this machine
    does not have the file, the code of the line is empty."""
    lines = locations.lines(location)[::-1]  # the innermost one last
    position = user_code.innermost([file for file, _ in lines])
    file, line = ("", 0) if position is None else lines[position]
    return Source(locations.only_node(location)[1], file=file, line=line, code=linecache.getline(file, line).strip())


def _source(node: Node) -> Source:
    file, line = _line(node)
    code = linecache.getline(file, line).strip() if file else ""
    return Source(str(node.target), module_path(node), _module_class(node), file, line, code)


def _line(node: Node) -> tuple[str, int]:
    """The user's line in the node's stack. If the stack has none, it is the line that is running, which calls the
    model: modules of PyTorch leave no line in a graph."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    position = user_code.innermost([file for file, _ in frames])
    file, line = user_code.line().rpartition(":")[::2] if position is None else frames[position]
    return file, int(line or 0)


def _module_class(node: Node) -> str:
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    if not stack:
        return ""
    _, kind = list(stack.values())[-1]
    return kind.__name__ if isinstance(kind, type) else str(kind).rpartition(".")[2]
