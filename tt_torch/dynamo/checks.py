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
    """Removes the checks from the graph and returns them. The tensor that a check reads becomes an extra result."""
    nodes = [n for n in gm.graph.nodes if _is_check(n)]
    (output,) = (n for n in gm.graph.nodes if n.op == "output")
    checks: list[Check] = []
    for node in nodes:
        token, op, read, *rest = node.args
        checks.append(Check(CHECKS[op], tuple(rest), dict(node.kwargs)))
        output.args = ((*output.args[0], read),)
        for result in list(node.users):  # these are only tokens, which keep the order of effects
            assert result.target is operator.getitem
            result.replace_all_uses_with(token)
            gm.graph.erase_node(result)
        gm.graph.erase_node(node)
        if token.op == "placeholder" and set(token.users) <= {output}:  # its value is None
            token.replace_all_uses_with(None)
            token.meta["val"] = None
    if nodes:
        gm.recompile()
    return checks


def _is_check(node: Node) -> bool:
    return node.target is torch.ops.higher_order.with_effects and node.args[1] in CHECKS
