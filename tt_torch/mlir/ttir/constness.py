"""Finds values that depend only on parameters and constants, so that they are known before the inputs."""

from __future__ import annotations

from collections.abc import Collection

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import VARYING, argument_kind, argument_kinds
from tt_torch.mlir.types import Function, Value

# They have no operands, but their results differ at each run, or are memory of their own.
DRAWS = ("ttir.rand", "ttnn.rand", "ttnn.empty")

# Preparing weights takes few ops. A value that depends on more ops than this counts as not constant.
FARTHEST = 64


def can_be_constant(op: str) -> bool:
    """Whether the results of an op of this name are constant if its operands are.

    The results of a collective are not constant, because each chip computes its constants by itself.
    """
    return op not in DRAWS and not (op in ods.OPS and ods.OPS[op].facts.get("collective"))


def is_constant(value: Value) -> bool:
    """Whether `value` depends only on parameters, constants and creation ops."""
    seen, pending = {value}, [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, ir.Block):
            continue
        if not can_be_constant(owner.name):
            return False
        fresh = [v for v in owner.operands if v not in seen]
        seen.update(fresh)
        pending += fresh
        if len(seen) > FARTHEST:
            return False
    arguments = (v for v in seen if isinstance(v.owner, ir.Block))
    return all(argument_kind(a.owner.owner, a.arg_number) not in VARYING for a in arguments)


def constant_values(function: Function, varying: Collection[str] = VARYING) -> set[Value]:
    """All constant values of a function at once, for passes that ask about each op.

    Arguments of the roles `varying` are not constant.
    """
    block = function.regions[0].blocks[0]
    kinds = argument_kinds(function)
    found = {a for a, kind in zip(block.arguments, kinds, strict=True) if kind not in varying}
    for op in block.operations:
        op = op.operation
        if op.name != "func.return" and can_be_constant(op.name) and all(v in found for v in op.operands):
            found.update(op.results)
    return found
