"""The tensors to which the calls of a captured graph write, and the memory that its nodes share."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from tt_torch.dynamo.types import Argument
from tt_torch.torch_private.ops import OpOverload, OpOverloadPacket, written
from tt_torch.torch_private.tensors import storage_of

_NAMES = "setitem iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift".split()
_OPERATORS = {getattr(operator, name) for name in _NAMES} | {f"__{name}__" for name in _NAMES}


def written_by(node: Node) -> list[Node]:
    """The nodes to which a call writes, also those in a list. It is `x` for each of `x.add_(1)`, `x += 1`,
    `relu(x, inplace=True)` and `add(y, z, out=x)`."""
    found: list[Node] = []
    map_arg(_arguments(node), found.append)
    return found


def first_operand(node: Node) -> Node:
    """The tensor that a captured call of a view takes, by position or by name."""
    first = node.args[0] if node.args else node.kwargs.get("input", node.kwargs.get("self"))
    assert isinstance(first, Node)
    return first


def base_of(view: Node) -> Node | None:
    """The operand with which a node of a captured graph shares memory, if there is one. A node with several results,
    such as `meshgrid`, has the memory of them all."""
    memory = {*map(storage_of, examples(view))}
    return next((n for n in view.all_input_nodes if memory & {*map(storage_of, examples(n))}), None)


def examples(node: Node) -> list[torch.Tensor]:
    """The examples of a node's results that are strided tensors."""
    value = node.meta.get("example_value")
    values = value if isinstance(value, (list, tuple)) else [value]
    return [x for x in values if isinstance(x, torch.Tensor) and x.layout is torch.strided]


def _arguments(node: Node) -> Sequence[Argument]:
    target, given = node.target, (node.args, node.kwargs)
    if isinstance(target, OpOverload):
        return written(target, *given)
    if isinstance(target, OpOverloadPacket):
        return [x for name in target.overloads() for x in written(getattr(target, name), *given)]
    first = node.args[0] if node.args else node.kwargs.get("input")
    return [node.kwargs.get("out"), first if _is_in_place(node) else None]


def _is_in_place(node: Node) -> bool:
    """Whether a method or a function of PyTorch writes to its first argument. Only its name says so. Names of operators
    such as `operator.and_` end in `_` only because `and` is a keyword."""
    if node.target in _OPERATORS or node.kwargs.get("inplace") is True:
        return True
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return name.endswith("_") and not name.endswith("__") and getattr(node.target, "__module__", "") != "_operator"
