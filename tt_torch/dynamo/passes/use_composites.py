"""ATen ops that TTNN computes whole become composites, which no later stage takes apart."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, Node

from tt_torch.dynamo import composites

aten = torch.ops.aten
Rule = Callable[[Graph, Node], Any]
RULES: dict[Any, Rule] = {}


def rule(target: Any) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES[target] = function
        return function

    return register


def use_composites(graph: Graph) -> None:
    """Replaces each node that has a rule, by the new node that the rule returns or not at all (None)."""
    for node in list(graph.nodes):
        if node.target not in RULES:
            continue
        with graph.inserting_before(node):
            new = RULES[node.target](graph, node)
        if new is None:
            continue
        first = _first_output(node)
        new.meta = {**node.meta, "val": first.meta["val"]}
        first.replace_all_uses_with(new)
        for user in [*node.users, node]:
            graph.erase_node(user)


def _outputs(node: Node) -> dict[int, Node]:
    return {user.args[1]: user for user in node.users if user.target is operator.getitem}


def _first_output(node: Node) -> Node:
    return _outputs(node).get(0, node)


def _only_first(node: Node) -> bool:
    """Whether nobody reads any output but the first."""
    unread = all(i == 0 or not out.users for i, out in _outputs(node).items())
    if unread:
        for i, out in _outputs(node).items():
            if i:
                node.graph.erase_node(out)
    return unread and 0 in _outputs(node)


def _arguments(node: Node) -> dict[str, Any]:
    """All arguments of an ATen node by schema name, defaults filled in."""
    schema = node.target._schema.arguments
    given = dict(zip((a.name for a in schema), node.args, strict=False)) | dict(node.kwargs)
    return {a.name: given.get(a.name, a.default_value if a.has_default_value() else None) for a in schema}


@rule(aten.gelu.default)
def gelu(graph: Graph, node: Node) -> Node:
    tanh = _arguments(node)["approximate"] == "tanh"
    return graph.call_function(composites.gelu_tanh if tanh else composites.gelu, (node.args[0],))


@rule(aten.native_layer_norm.default)
def layer_norm(graph: Graph, node: Node) -> Node | None:
    a = _arguments(node)
    # Training also reads the mean and the reciprocal deviation; TTNN's op has them not.
    if len(a["normalized_shape"]) != 1 or not _only_first(node):
        return None
    attributes = {"normalized_shape": list(a["normalized_shape"]), "epsilon": a["eps"]}
    return graph.call_function(composites.layer_norm, (a["input"], a["weight"], a["bias"]), attributes)


@rule(aten._scaled_dot_product_flash_attention_for_cpu.default)
def attention(graph: Graph, node: Node) -> Node | None:
    a = _arguments(node)
    query, key = a["query"].meta["val"], a["key"].meta["val"]
    if a["dropout_p"] or query.shape[1] != key.shape[1] or not _only_first(node):
        return None
    scale = a["scale"] if a["scale"] is not None else 1 / math.sqrt(query.shape[-1])
    mask = _additive(graph, a["attn_mask"], query.dtype)
    operands = (a["query"], a["key"], a["value"], mask)
    attributes = {"is_causal": a["is_causal"], "scale": scale}
    return graph.call_function(composites.scaled_dot_product_attention, operands, attributes)


def _additive(graph: Graph, mask: Node | None, dtype: torch.dtype) -> Node | None:
    """A boolean mask (True takes part) as one to add to the scores."""
    if mask is None or mask.meta["val"].dtype is not torch.bool:
        return mask
    value = mask.meta["val"]
    with value.fake_mode:
        scalar, full = torch.empty((), dtype=dtype), torch.empty(value.shape, dtype=dtype)
    zero, lowest = (_node(graph, aten.scalar_tensor.default, (v,), scalar, dtype=dtype) for v in (0.0, -math.inf))
    return _node(graph, aten.where.self, (mask, zero, lowest), full)


def _node(graph: Graph, target: Any, args: tuple[Any, ...], value: torch.Tensor, **kwargs: Any) -> Node:
    node = graph.call_function(target, args, kwargs)
    node.meta["val"] = value
    return node


@rule(aten._native_batch_norm_legit_no_training.default)
def batch_norm(graph: Graph, node: Node) -> Node | None:
    """To the form with one output that StableHLO has as one op."""
    a = _arguments(node)
    if not _only_first(node) or a["weight"] is None or a["bias"] is None:
        return None
    statistics = (a["running_mean"], a["running_var"])
    args = (a["input"], a["weight"], a["bias"], *statistics, False, a["momentum"], a["eps"], False)
    return graph.call_function(aten.batch_norm.default, args)
