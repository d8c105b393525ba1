"""Checks that eager PyTorch makes on the host between two ops, for example whether a matrix is invertible.

The program does not wait for a check: the tensor that it reads becomes an extra result. The check runs after the
program, before the caller gets any result.
"""

from __future__ import annotations

import operator

import torch
from torch.fx import GraphModule, Node

from tt_torch.dynamo.calls import CHECKS, Check


def defer_checks(gm: GraphModule) -> list[Check]:
    """Removes the checks from the graph and returns them. The tensor that a check reads becomes an extra result.

    A check in the user's function has tokens, which keep the order of effects. A check of a decomposition has none.
    """
    nodes = {n: has for n in gm.graph.nodes if (has := _has_tokens(n)) or n.target in CHECKS}
    (output,) = (n for n in gm.graph.nodes if n.op == "output")
    checks: list[Check] = []
    for node, has_tokens in nodes.items():
        op, read, *rest = node.args[1:] if has_tokens else (node.target, *node.args)
        checks.append(Check(CHECKS[op], tuple(rest), dict(node.kwargs)))
        output.args = ((*output.args[0], read),)
        if has_tokens:
            _pass_token(node, output)
        gm.graph.erase_node(node)
    if nodes:
        gm.recompile()
    return checks


def _has_tokens(node: Node) -> bool:
    return node.target is torch.ops.higher_order.with_effects and node.args[1] in CHECKS


def _pass_token(node: Node, output: Node) -> None:
    """Gives the token of a check that is removed to what comes after the check. The first token of all is None."""
    token = node.args[0]
    for result in list(node.users):
        assert result.target is operator.getitem
        result.replace_all_uses_with(token)
        node.graph.erase_node(result)
    if token.op == "placeholder" and set(token.users) <= {output, node}:
        token.replace_all_uses_with(None)
        token.meta["val"] = None
