"""Replaces scatters that subtract, such as JAX's `x.at[i].subtract(y)`, by scatters that add the negated updates.

A sum does not depend on the order of its parts, apart from rounding, so the device has an op for it.
"""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir.functions import nested
from tt_torch.mlir.stablehlo.bodies import combining
from tt_torch.mlir.stablehlo.build import make


def add_instead(module: ir.Module) -> None:
    for op in nested(module):
        if op.name == "stablehlo.scatter" and combining(op) == ["subtract"]:
            _negate(op)


def _negate(op: ir.Operation) -> None:
    body = op.regions[0].blocks[0]
    difference, last = (each.operation for each in body.operations)
    if list(difference.operands) != list(body.arguments):
        return  # an update minus the element depends on the order of the updates
    with op.context, op.location:
        with ir.InsertionPoint(op):
            op.operands[2] = make("negate", op.operands[2].type, op.operands[2])
        with ir.InsertionPoint(last):
            last.operands[0] = make("add", difference.results[0].type, *body.arguments)
    difference.erase()
