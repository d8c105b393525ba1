"""Ops with operands on the CPU and on the device: eager PyTorch refuses them, but a captured program copies operands.

While Dynamo captures a program, it tries each op on fake tensors. If PyTorch refuses an op because some operands are on
the CPU and others on the device, copies to the device are inserted before the op. Gradients of copied operands are on
the CPU again.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch.fx import Node

from tt_torch.dynamo import facts
from tt_torch.dynamo.facts import Fact
from tt_torch.dynamo.types import Argument, Arguments, Result
from tt_torch.torch_private import dynamo
from tt_torch.torch_private.tensors import version
from tt_torch.torch_private.trees import tree_map


def run_node(tracer: object, node: Node, args: tuple[Argument, ...], kwargs: Arguments, nnmodule: object) -> Result:
    """The function that Dynamo calls for each op. It returns the result on fake tensors, or raises RuntimeError."""
    strangers, device = _strangers(node)
    if device is None:
        return dynamo.run_node(tracer, node, args, kwargs, nnmodule)
    refusal: RuntimeError | None = None
    try:
        result = dynamo.run_node(tracer, node, args, kwargs, nnmodule)
        if not _ignores_devices(node):
            return result
    except RuntimeError as error:
        refusal = error
    copies = {n: n.meta["example_value"].to(device) for n in strangers}
    moved = {id(n.meta["example_value"]): copy for n, copy in copies.items()}
    args, kwargs = tree_map(lambda value: moved.get(id(value), value), (args, kwargs))
    failure: RuntimeError | None = None
    try:
        result = dynamo.run_node(tracer, node, args, kwargs, nnmodule)
        if any(version(copy) for copy in copies.values()):
            failure = refusal  # the op writes to the CPU's tensor
    except RuntimeError as error:
        failure = refusal or error
    if failure:
        raise failure  # raised outside of the handler, because Dynamo looks at the cause of an error
    _insert(node, copies, device)
    return result


def _insert(node: Node, copies: Mapping[Node, torch.Tensor], device: torch.device) -> None:
    """Replaces some operands of the node by copies on the device."""
    for operand, value in copies.items():
        with node.graph.inserting_before(node):
            copy = node.graph.call_method("to", (operand, device))
        copy.meta["example_value"] = value
        node.replace_input_with(operand, copy)


def _strangers(node: Node) -> tuple[list[Node], torch.device | None]:
    """The operands on the CPU if others are on the device, and that device. Scalars on the CPU are allowed anywhere."""
    values = [(n, n.meta.get("example_value")) for n in node.all_input_nodes]
    tensors = [(n, value) for n, value in values if isinstance(value, torch.Tensor)]
    device = next((value.device for _, value in tensors if value.device.type == "tt"), None)
    strangers = [n for n, value in tensors if value.device.type == "cpu" and value.dim()]
    return (strangers, device) if strangers else ([], None)


def _ignores_devices(node: Node) -> bool:
    """Whether PyTorch does not check the devices of fake operands. Convolutions check only the input's."""
    return Fact.CONVOLVES in facts.of(facts.called(node))
