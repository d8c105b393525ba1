"""Replaces `atan2` of complex numbers by other ops on them, for which there are native expansions.

Its definition is that of XLA: atan2(y, x) = -i log((x + i y) / sqrt(x * x + y * y)).
"""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir.functions import block, replace
from tt_torch.mlir.stablehlo.build import make
from tt_torch.mlir.stablehlo.complex_parts import is_complex, part_type
from tt_torch.mlir.types import Function


def angles_to_logarithms(function: Function) -> None:
    for op in [each.operation for each in block(function).operations]:
        if op.name == "stablehlo.atan2" and is_complex(op.results[0]):
            with ir.InsertionPoint(op), op.location:
                replace(op, _angle(*op.operands))


def _angle(y: ir.Value, x: ir.Value) -> ir.Operation:
    kind, real = x.type, part_type(x.type)
    (a, b), (c, d) = ((make("real", real, z), make("imag", real, z)) for z in (x, y))
    turned = make("complex", kind, make("subtract", real, a, d), make("add", real, b, c))  # x + i y
    squares = make("add", kind, *(make("multiply", kind, z, z) for z in (x, y)))
    logarithm = make("log", kind, make("divide", kind, turned, make("sqrt", kind, squares)))
    parts = make("imag", real, logarithm), make("negate", real, make("real", real, logarithm))
    return ir.Operation.create("stablehlo.complex", [kind], list(parts))
