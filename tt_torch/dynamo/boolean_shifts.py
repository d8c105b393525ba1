"""Shifts of booleans, such as `b << 3`: PyTorch's kernels compute them, but its shape functions refuse them."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import torch
from torch.fx import Node

from tt_torch.dynamo.types import Argument

# These functions give the same results, and their shape functions take booleans.
_INSTEAD = {operator.lshift: torch.bitwise_left_shift, operator.rshift: torch.bitwise_right_shift}


def accept_boolean_shift(node: Node, args: Sequence[Argument]) -> None:
    """Replaces the function of a node that shifts a boolean by an integer, or an integer by a boolean. Eager PyTorch
    does not shift a boolean by a boolean."""
    instead = _INSTEAD.get(node.target)
    if instead and sorted(map(_kind, args)) == ["boolean", "integer"]:
        node.target = instead


def _kind(value: Argument) -> str:
    if isinstance(value, bool) or (isinstance(value, torch.Tensor) and value.dtype is torch.bool):
        return "boolean"
    whole = isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex())
    return "integer" if whole or isinstance(value, int) else "other"
