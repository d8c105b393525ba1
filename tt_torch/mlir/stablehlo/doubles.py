"""Finds float64, which the device computes in float32."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir.functions import nested
from tt_torch.mlir.stablehlo.flatten import BRANCHES
from tt_torch.mlir.stablehlo.integer_rows import is_marked
from tt_torch.mlir.stablehlo.loops import LOOP
from tt_torch.mlir.types import Value


def first_in_float64(module: ir.Module) -> ir.Operation | None:
    """The first op of the device that reads or makes float64 or complex numbers of it, and depends on an input. Loops
    and branches do not count, but the ops in them do."""
    constant: set[Value] = set()
    for op in nested(module):
        if not op.regions and constant.issuperset(op.operands):
            constant.update(op.results)
        elif len(op.results) and op.name not in (LOOP, *BRANCHES) and not is_marked(op) and _has_float64(op):
            return op
    return None


def _has_float64(op: ir.Operation) -> bool:
    return any("f64" in str(x.type) for x in (*op.operands, *op.results))
