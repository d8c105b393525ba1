"""Computes values that depend on no input at compile time: aranges, masks, scalars, position ids.

Parameters are inputs. Values that depend only on them are computed once on the device, by TTNN's const-eval.
"""

from __future__ import annotations

import operator

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo import facts, graph_calls
from tt_torch.dynamo.facts import Fact
from tt_torch.dynamo.scalars import number_in
from tt_torch.dynamo.types import Argument, Result
from tt_torch.torch_private.ops import OpOverload
from tt_torch.torch_private.tensors import unset_fake_temporarily

aten = torch.ops.aten

# A folded tensor is passed as an argument of the program, so a large one is better computed on the device.
LARGEST = 1 << 24  # bytes
SMALL = (torch.uint8, torch.int8, torch.int16)


def constant_fold(gm: GraphModule, fold: bool) -> dict[str, torch.Tensor]:
    """Evaluates constant subgraphs on the CPU, and replaces the results by new placeholders after the existing ones.

    Returns the constants by placeholder name. Without `fold`, only attributes of the graph become placeholders.
    """
    graph, values = gm.graph, evaluate(gm, fold)
    constants: dict[str, torch.Tensor] = {}
    last = [n for n in graph.nodes if n.op == "placeholder"]
    for node, value in values.items():
        # The device can fill tensors, but torch-mlir cannot express constants of small integers or without elements.
        fills = node.target is aten.full.default and value.numel() and value.dtype not in SMALL
        if fills or all(user in values for user in node.users):
            continue
        with graph.inserting_after(last[-1]) if last else graph.inserting_before(next(iter(graph.nodes))):
            stand_in = graph.placeholder(f"constant_{len(constants)}")
        stand_in.target = stand_in.name  # unique: a part of a split graph already has placeholders with this target
        stand_in.meta = {key: fact for key, fact in node.meta.items() if key != "inexact"}  # the host was exact
        last.append(stand_in)
        with unset_fake_temporarily():
            constants[stand_in.name] = value.contiguous().to(node.meta["val"].device)
        stand_in.meta["constant"] = value
        node.replace_all_uses_with(stand_in)
    return constants


def evaluate(gm: GraphModule, fold: bool) -> dict[Node, Result]:
    """The values of nodes that depend on no input. Without `fold`, only the values of the graph's attributes."""
    values: dict[Node, Result] = {}
    with unset_fake_temporarily():  # while a model is captured, new tensors would have no elements
        for node in list(gm.graph.nodes):
            if node.op == "get_attr" and isinstance(getattr(gm, node.target), torch.Tensor):
                values[node] = getattr(gm, node.target)
            elif fold and _foldable(node, values):
                # Results of real ops may have other strides than tracing assumed, which not every view accepts.
                target = facts.of_any_strides(node.target)
                values[node] = target(*_concrete(node, node.args, values), **_concrete(node, node.kwargs, values))
                if Fact.ALLOCATES in facts.of(node.target):
                    values[node].zero_()  # what the memory held would differ from one compilation to the next
    return values


def _foldable(node: Node, values: dict[Node, Result]) -> bool:
    if node.op != "call_function" or any(n not in values for n in node.all_input_nodes):
        return False
    if node.target is operator.getitem:
        return True
    if not isinstance(node.target, OpOverload) or facts.of(node.target) & (Fact.DRAWS | Fact.EXCHANGES):
        return False
    if graph_calls.is_call(node.target):
        return False
    found = node.meta.get("val")
    results = found if isinstance(found, (list, tuple)) else [found]
    return all(isinstance(v, torch.Tensor) and v.numel() * v.element_size() <= LARGEST for v in results)


def _concrete(node: Node, argument: Argument, values: dict[Node, Result]) -> Argument:
    """Replaces nodes in an argument by their values, all on the CPU.

    Tracing turns numbers into tensors. As an operand in float32, 1e39 is infinite, but a float32 tensor of 1e39 is an
    error.
    """
    found = node.meta.get("val")

    def leaf(value: Argument) -> Argument:
        value = values[value] if isinstance(value, Node) else value
        if isinstance(value, torch.device):
            return torch.device("cpu")
        if isinstance(value, float) and isinstance(found, torch.Tensor):
            return number_in(value, found.dtype) if found.is_floating_point() else value
        return value.cpu() if isinstance(value, torch.Tensor) else value

    return torch.fx.node.map_aggregate(argument, leaf)
