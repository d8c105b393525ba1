"""Rules on FX nodes, and functions for the passes that replace ops."""

from __future__ import annotations

import copy
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg

from tt_torch import user_code
from tt_torch.dynamo.facts import ByOp
from tt_torch.dynamo.scalars import number_in
from tt_torch.dynamo.types import Argument, Arguments, Function, Scalar, Target
from tt_torch.torch_private.captured import keep_notes
from tt_torch.torch_private.ops import OpOverload, schema

# A rule gets a node and its arguments by schema name; it returns the node to take its place, or None.
Rule: TypeAlias = Callable[[Node, Arguments], Node | None]
# The metadata that says where a node comes from in the user's program. AOTAutograd gives the third one to nodes
# of a backward graph. The last one is the op from whose decomposition the node is.
ORIGIN = ("stack_trace", "nn_module_stack", "fwd_nn_module_stack", "original_aten")


class Rules(ByOp[Rule]):
    """Rules by the op at which they start; they are registered where they are written."""

    def apply(self, graph: Graph) -> None:
        """Replaces each node that a rule matches. A rule for an op with several results replaces all of them, or the
        first one if nobody reads the others."""
        for node in list(graph.nodes):
            rule = self.get(node.target)
            if rule is None:
                continue
            with graph.inserting_before(node):
                new = rule(node, arguments(node))
            if new is None:
                continue
            if isinstance(new.meta["val"], torch.Tensor):
                outputs(node).get(0, node).replace_all_uses_with(new)
            else:
                node.replace_all_uses_with(new)
            for user in [*node.users, node]:
                graph.erase_node(user)


def call(node: Node, target: Function, *args: Argument, **kwargs: Argument) -> Node:
    """A new node for the rule that replaces `node`, with its value, and the user's source line and module."""
    new, device = node.graph.call_function(target, args, kwargs), value(node).device
    with value(node).fake_mode:
        values, named = map_arg((args, kwargs), lambda n: _on(n.meta["val"], device))
        new.meta = _origin(node) | {"val": target(*values, **named)}
    return new


def _on(value: Any, device: torch.device) -> Any:
    """A value on a device. Copies between devices are gone, but values are where they were before and after them."""
    return value.to(device) if isinstance(value, torch.Tensor) and value.device != device else value


def fill(node: Node, shape: Sequence[int], number: Scalar, dtype: torch.dtype) -> Node:
    """A tensor of one number, which is converted to `dtype`, on the device of the result of `node`."""
    given = number_in(number, dtype)
    return call(node, torch.ops.aten.full.default, list(shape), given, dtype=dtype, device=value(node).device)


def composite(node: Node, op: OpOverload, *args: Argument, **kwargs: Argument) -> Node:
    """A composite that replaces `node`, with all its results or with the first one."""
    new = node.graph.call_function(op, args, kwargs)
    whole = len(schema(op).returns) > 1
    new.meta = _origin(node) | {"val": node.meta["val"] if whole else value(node)}
    return new


def _origin(node: Node) -> dict[str, Any]:
    """The metadata that says where a node comes from in the user's program."""
    return {name: node.meta[name] for name in ORIGIN if name in node.meta}


def copied(gm: GraphModule) -> GraphModule:
    """The same graph with new nodes, which have copies of the `meta` dictionaries. The attributes are shared."""
    other = GraphModule(gm, copy.deepcopy(gm.graph))
    keep_notes(gm, other)
    return other


def as_function(gm: GraphModule) -> Function:
    """The graph as it is now, as a function in eager PyTorch. It is Python code, so later changes of the graph do not
    affect it."""
    views = views_to_reshapes(gm)
    looked_up = _with_index_errors(gm.graph)
    run = GraphModule(gm, gm.graph).forward
    for node, target in views.items():
        node.target = target
    for node in looked_up:
        gm.graph.erase_node(node)
    return run


def _with_index_errors(graph: Graph) -> list[Node]:
    """Looks up the index of each scatter that was an `index_copy` or its like; returns the new nodes, last ones first.

    For an index that is out of range, these ops raise an IndexError, and a scatter raises a RuntimeError.
    """
    aten = torch.ops.aten
    ops = (aten.index_copy, aten.index_fill, aten.index_put, aten.index_reduce, aten.put)
    new = []
    for node in graph.nodes:
        origin = getattr(node.meta.get("original_aten"), "overloadpacket", None)
        scatters = node.target in (aten.scatter.src, aten.scatter_reduce.two)
        if scatters and origin in ops:
            x, dim, index = node.args[:3]
            size = [value(x).shape[dim], 1]
            with graph.inserting_before(node):
                rows = graph.call_function(aten.ones.default, (size,), {"device": value(index).device})
                new += [rows, graph.call_function(aten.embedding.default, (rows, index))]
    return new[::-1]


def views_to_reshapes(gm: GraphModule) -> dict[Node, Target]:
    """Makes a reshape of each view, for a graph that runs in eager PyTorch. Returns the earlier target of each node.

    Kernels may give other strides than the shape functions with which the graph was traced. For `x[i]` with a permuted
    `i`, `view` refuses the strides of the kernel, while it accepts those of the trace.
    """
    kinds = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)
    views = {n: n.target for n in gm.graph.nodes if n.target in kinds}
    for node in views:
        node.target = torch.ops.aten.reshape.default
    return views


def arguments(node: Node) -> Arguments:
    """All arguments of an ATen node by schema name, defaults filled in."""
    parameters = schema(node.target).arguments
    given = dict(zip((p.name for p in parameters), node.args, strict=False)) | dict(node.kwargs)
    return {p.name: given.get(p.name, p.default_value if p.has_default_value() else None) for p in parameters}


def value(node: Node) -> Any:
    """The fake tensor of a node's first result; None for a graph that an op calls."""
    found = node.meta.get("val")
    return found[0] if isinstance(found, (list, tuple)) else found


def fake_inputs(gm: GraphModule) -> list[Argument]:
    """New fake tensors for the inputs of a graph that is traced again: tracing distinguishes tensors by identity, but
    AOTAutograd may use one fake tensor for several placeholders."""
    values = [n.meta["val"] for n in gm.graph.nodes if n.op == "placeholder"]
    return [v.detach() if isinstance(v, Tensor) else v for v in values]


def outputs(node: Node) -> dict[int, Node]:
    """The nodes that select single results of an op with several results, by number."""
    return {user.args[1]: user for user in node.users if user.target is operator.getitem}


def only_first(node: Node) -> bool:
    """Whether only the first output has readers. Nodes that select other outputs, and have no users, are erased."""
    unread = all(i == 0 or not out.users for i, out in outputs(node).items())
    if unread:
        for i, out in outputs(node).items():
            if i:
                node.graph.erase_node(out)
    return unread and 0 in outputs(node)


def user_line(node: Node) -> str:
    """The innermost source line of a node outside of installed packages, as `file.py:12`.

    Modules of PyTorch leave no line in a graph. Then the result is the line that is running: it calls the model.
    """
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    own = [f for f in frames if "/site-packages/" not in f[0]]
    if own:
        return ":".join(own[-1])
    return user_code.line() or (":".join(frames[-1]) if frames else f"node {node.name}")
