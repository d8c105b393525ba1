"""Corrects StableHLO that torch-mlir writes for an op of PyTorch, if its meaning differs from the op's meaning."""

from __future__ import annotations

import numpy as np
from torch_mlir import ir

from tt_torch.mlir.functions import block, replace
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.build import constant
from tt_torch.mlir.types import Function

SIGN_OF_NAN_IS_ZERO = "tt.sign_of_nan_is_zero"
ZERO_IS_AN_ERROR = "tt.zero_is_an_error"


def correct(function: Function) -> None:
    for op in list(block(function).operations):
        if correction := CORRECTIONS.get(op.operation.name):
            with ir.InsertionPoint(op), op.operation.location:
                correction(op.operation)


def _shift(op: ir.Operation) -> None:
    """A right shift of unsigned integers fills with zeros. In StableHLO, the highest bit is a sign for this op."""
    if op.results[0].type.element_type.is_unsigned:
        kinds = [result.type for result in op.results]
        replace(op, ir.Operation.create("stablehlo.shift_right_logical", kinds, list(op.operands)))


def _reduce(op: ir.Operation) -> None:
    """The search for the smallest or largest unsigned integer begins at the ends of its type. torch-mlir begins at the
    ends of the signed type, so an element of 200 would never be the smallest uint8."""
    kind, count = op.operands[0].type.element_type, len(op.results)
    if not isinstance(kind, ir.IntegerType) or not kind.is_unsigned:
        return
    ops = [o.operation for o in op.regions[0].blocks[0].operations]
    compares = [attrs.direction(o).startswith("G") for o in ops if o.name == "stablehlo.compare"]
    ends = [o.name == "stablehlo.maximum" for o in ops if o.name in ("stablehlo.maximum", "stablehlo.minimum")]
    for is_largest in (compares if count > 1 else ends)[:1]:
        start = 0 if is_largest else 2**kind.width - 1
        op.operands[count] = constant(op.operands[count].type, np.array(start, f"uint{kind.width}"))


def _sign(op: ir.Operation) -> None:
    """In PyTorch, the sign of NaN is 0, and the sign of a zero is a zero without a sign. In StableHLO, the sign of NaN
    or of a zero is the operand itself."""
    op.attributes[SIGN_OF_NAN_IS_ZERO] = ir.UnitAttr.get()


def _division(op: ir.Operation) -> None:
    """In PyTorch, a division of integers by zero is an error. In StableHLO, it has a value."""
    op.attributes[ZERO_IS_AN_ERROR] = ir.UnitAttr.get()


CORRECTIONS = {
    "chlo.broadcast_divide": _division,
    "chlo.broadcast_remainder": _division,
    "stablehlo.divide": _division,
    "stablehlo.remainder": _division,
    "stablehlo.reduce": _reduce,
    "stablehlo.shift_right_arithmetic": _shift,
    "stablehlo.sign": _sign,
}
