"""A captured graph as text: everything of it that AOTAutograd and the compiler read.

The text is complete because this module knows every kind of value that it writes. A graph with any other value has no
text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo.interface import source
from tt_torch.torch_private.ops import HigherOrderOperator, OpOverload, OpOverloadPacket

Value: TypeAlias = Any  # an argument of a node, or something in its metadata
# Where functions of a graph may come from: PyTorch, whose version is in the key, and Python itself.
MODULES = ("torch", "_operator", "math", "builtins")
OPS = ("aten", "prims")
# Values whose `str` tells everything about them.
PLAIN = (torch.dtype, torch.device, torch.layout, torch.memory_format)
# The metadata of nodes that we and AOTAutograd read. `example_value` and `grapharg` are written for inputs.
METADATA = ("stack_trace", "nn_module_stack", "custom")
# Other metadata: made by Dynamo, and read by nobody after it.
UNREAD = ("source_fn_stack", "creation_timestamp")


class UnknownToCache(Exception):
    """A graph has something that its text could not tell."""


def text_of(gm: GraphModule, inputs: Sequence[Value]) -> str:
    """The text of a graph. `inputs` are examples of its inputs, and only their forms count.

    Raises UnknownToCache for a graph that has no text.
    """
    if [*gm.children(), *gm.parameters(), *gm.buffers()]:
        raise UnknownToCache("the graph has parts of its own")
    numbers = {node: i for i, node in enumerate(gm.graph.nodes)}
    placeholders = gm.graph.find_nodes(op="placeholder")
    forms = [[_input(node), _form(x)] for node, x in zip(placeholders, inputs, strict=True)]
    return json.dumps([forms, _sharing(inputs), [_node(node, numbers) for node in numbers]])


def _node(node: Node, numbers: Mapping[Node, int]) -> list[Value]:
    if node.op not in ("placeholder", "call_function", "call_method", "output"):
        raise UnknownToCache(f"{node.op} of {node.target}")
    made = node.meta.get("example_value")
    if isinstance(made, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise UnknownToCache(f"{node.name} is a number that depends on inputs")
    known = {*METADATA, *UNREAD, "example_value", "grapharg", "tensor_dict"}
    if unknown := node.meta.keys() - known:
        raise UnknownToCache(f"{node.name} has the metadata {unknown}")
    target = _function(node.target) if node.op == "call_function" else str(node.target)
    arguments = [_encoded(part, numbers) for part in (node.args, node.kwargs)]
    metadata = [node.meta.get("stack_trace"), _modules(node), _encoded(node.meta.get("custom", {}), numbers)]
    return [node.op, node.name, target, arguments, metadata]


def _modules(node: Node) -> list[Value]:
    """The modules that a node belongs to. Their keys in the metadata are addresses in memory."""
    stack = node.meta.get("nn_module_stack", {}).values()
    return [[path, kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"] for path, kind in stack]


def _function(target: Callable[..., Value]) -> str:
    """The name under which a module of PyTorch or Python has this very function."""
    if isinstance(target, (OpOverload, OpOverloadPacket)):
        name = str(target)
        if name.partition(".")[0] in OPS:
            return name
    elif not isinstance(target, HigherOrderOperator):
        module = getattr(target, "__module__", None) or ""
        if module.partition(".")[0] in MODULES:
            names = sorted(name for name, value in vars(sys.modules[module]).items() if value is target)
            if names:
                return f"{module}:{names[0]}"
    raise UnknownToCache(f"the function {target}")


def _encoded(value: Value, numbers: Mapping[Node, int]) -> Value:
    """A value as JSON, with its type."""
    kind = type(value)
    if kind is Node:
        return ["node", numbers[value]]
    if kind in (tuple, list, torch.Size):
        return [kind.__name__, [_encoded(part, numbers) for part in value]]
    if kind is slice:
        return ["slice", [_encoded(part, numbers) for part in (value.start, value.stop, value.step)]]
    if isinstance(value, Mapping):  # also FX's own dicts
        return ["dict", [[_encoded(key, numbers), _encoded(part, numbers)] for key, part in value.items()]]
    if isinstance(value, (tuple, list)):  # FX's own lists and tuples
        return [kind.__name__, [_encoded(part, numbers) for part in value]]
    if value is None or value is ... or kind in (bool, int, float, complex, str):
        return [kind.__name__, repr(value)]
    if isinstance(value, PLAIN):
        return ["torch", str(value)]
    raise UnknownToCache(f"an argument of the type {kind}")


def _input(node: Node) -> list[Value]:
    """The name that Dynamo gives to an input, and whether the memory of the input stays where it is."""
    return [source(node), str(node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type"))]


def _form(x: Value) -> list[Value]:
    """The form of an input, which is a plain tensor in the memory of the CPU."""
    if type(x) not in (torch.Tensor, torch.nn.Parameter) or x.layout != torch.strided or x.device.type != "cpu":
        raise UnknownToCache(f"an input of the type {type(x)}")
    if torch.is_grad_enabled() and x.requires_grad:
        raise UnknownToCache("the graph has gradients")
    bits = (x.requires_grad, x.is_conj(), x.is_neg(), x.is_inference(), type(x) is torch.nn.Parameter)
    return [list(x.shape), list(x.stride()), x.storage_offset(), str(x.dtype), bits]


def _sharing(inputs: Sequence[torch.Tensor]) -> list[int]:
    """For each input, the first one that has the same memory."""
    first: dict[int, int] = {}
    return [first.setdefault(x.untyped_storage().data_ptr(), i) for i, x in enumerate(inputs)]
