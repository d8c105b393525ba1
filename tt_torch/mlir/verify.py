"""The legality check between steps: each op of TTIR and TTNN has the types that its declaration infers."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.errors import IRVerificationError
from tt_torch.mlir import infer, ods
from tt_torch.mlir.context import describe
from tt_torch.mlir.functions import block, defined


def verify(module: ir.Module) -> None:
    """Raises IRVerificationError for the first op that breaks the rules of its level."""
    with module.context, ir.Location.unknown():
        for function in defined(module):
            for op in block(function).operations:
                _verify_op(op.operation)
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            raise IRVerificationError("module", describe(module.operation.location), str(error)) from error


def _verify_op(op: ir.Operation) -> None:
    declaration = ods.OPS.get(op.name)
    if declaration is None:
        return
    if missing := [n for n, (_, d) in declaration.attrs.items() if d is ods.REQUIRED and n not in op.attributes]:
        raise IRVerificationError(op.name, describe(op.location), f"it lacks the attributes {', '.join(missing)}")
    if declaration.infer is None:
        return
    operands = list(ods.operands_of(op).values())
    attributes = ods.attrs_of(op)
    wrong = infer.verify(op.name, declaration.infer, operands, attributes, [r.type for r in op.results])
    if wrong:
        raise IRVerificationError(op.name, describe(op.location), wrong)
