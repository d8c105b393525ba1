"""Finds the op of a program that torch-mlir cannot lower, if the diagnostic does not name it.

The diagnostic may name only a constant that is an operand of the op, without a location. After such a failure, each op
is lowered by itself; the first one that fails is reported.
"""

from __future__ import annotations

from collections.abc import Callable

from torch_mlir import ir

from tt_torch.mlir.child import NativeCrash
from tt_torch.mlir.functions import program_of
from tt_torch.mlir.types import Function

SCALARS = ("torch.constant.", "torch.prim.ListConstruct", "torch.prim.TupleConstruct")


def first_failing(function: Function, lower: Callable[[ir.Module], None]) -> ir.Location | None:
    """The location of the first op in `function` for which `lower` fails or crashes if it is alone in a module."""
    for op in function.regions[0].blocks[0].operations:
        op = op.operation
        if not op.name.startswith(("torch.aten.", "torch.prims.", "torch.operator")):
            continue
        try:
            lower(_alone(op))
        except (ir.MLIRError, NativeCrash):
            return op.location
    return None


def _alone(op: ir.Operation) -> ir.Module:
    """A module with one function of this op and of the constants it reads; tensors are its arguments."""
    copied = [*_constants(op), op]
    tensors = list(dict.fromkeys(v for o in copied for v in o.operands if not _is_constant(v)))
    return program_of(copied, tensors, list(op.results))


def _is_constant(value: ir.Value) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.operation.name.startswith(SCALARS)


def _constants(op: ir.Operation) -> list[ir.Operation]:
    """The constants, and lists of constants, that an op reads; each comes before its readers."""
    found: list[ir.Operation] = []
    for value in op.operands:
        if _is_constant(value):
            found += [*_constants(value.owner.operation), value.owner.operation]
    return list(dict.fromkeys(found))
