"""Lowers the torch dialect to StableHLO with torch-mlir's passes. Calls of decompositions become composites."""

from __future__ import annotations

import re

from torch_mlir import ir

from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir.child import NativeCrash
from tt_torch.mlir.context import describe, node_of
from tt_torch.mlir.functions import block, main, replace
from tt_torch.mlir.guard import run_guarded
from tt_torch.mlir.stablehlo.blame import first_failing
from tt_torch.mlir.stablehlo.collectives import write_collectives
from tt_torch.mlir.stablehlo.of_pytorch import correct
from tt_torch.mlir.types import Function
from tt_torch.mlir.user_ops import to_custom_calls

# torch-mlir would decompose these ops, but StableHLO has them.
KEPT = "aten.batch_norm"
# This is torch-mlir's own backend pipeline without its last two parts. These would expand CHLO ops such as erf into
# polynomials, and would refuse calls in a check.
TO_STABLEHLO = (
    f"torchdynamo-export-to-torch-backend-pipeline{{backend-legal-ops={KEPT}}}",
    "func.func(convert-torch-to-stablehlo)",
    "func.func(convert-torch-to-arith)",
    "func.func(canonicalize,cse)",
    "torch-func-backend-type-conversion-for-stablehlo",
    "func.func(canonicalize)",
    "func.func(torch-finalizing-backend-type-conversion-for-stablehlo)",
    # torch-mlir writes static shapes as dynamic_iota, dynamic_reshape and similar ops of constants.
    "func.func(stablehlo-canonicalize-dynamism,canonicalize)",
)
_ILLEGAL = re.compile(r"failed to legalize operation '(torch\.[\w.]+)'")


def to_stablehlo(module: ir.Module) -> None:
    """Runs torch-mlir's passes. Raises UnsupportedOpError for an ATen op that they cannot legalize, and NativeCrash for
    an op that crashes them."""
    try:
        run_guarded(module, *TO_STABLEHLO)
    except ir.MLIRError as error:
        raise unsupported_by(module, error) or error from error
    except NativeCrash as crash:
        location = first_failing(main(module), _lower)
        where = f"{node_of(location)[1]} at {describe(location)}" if location else "no single op is the cause"
        raise NativeCrash(f"torch-mlir crashed while lowering: {crash}: {where}") from None
    with module.context, ir.Location.unknown():
        to_custom_calls(module)
        write_collectives(module)
        _name_composites(module)
        for function in module.body.operations:
            correct(function)
            if function.name.value != "main":
                _make_sorts_stable(function)


def _lower(module: ir.Module) -> None:
    run_guarded(module, *TO_STABLEHLO)


def unsupported_by(module: ir.Module, error: ir.MLIRError) -> UnsupportedOpError | None:
    """The error with the name and the line of its op; None if the diagnostic names no op."""
    for diagnostic in error.error_diagnostics:
        if found := _ILLEGAL.search(diagnostic.message):
            location = diagnostic.location
            if not node_of(location)[1]:
                location = first_failing(main(module), _lower) or location
            op = node_of(location)[1] or found[1]
            detail = "torch-mlir does not know it" if found[1] == "torch.operator" else found[0]
            return UnsupportedOpError(op, "stablehlo", describe(location), detail)
    return None


def _name_composites(module: ir.Module) -> None:
    """Turns calls of decompositions into `stablehlo.composite`, with the table that the module has as an attribute."""
    table = module.operation.attributes["tt.composites"]
    for op in list(block(main(module)).operations):
        op = op.operation
        if op.name != "func.call":
            continue
        callee = op.attributes["callee"]
        attributes = {
            "name": table[callee.value]["name"],
            "composite_attributes": table[callee.value]["attributes"],
            "decomposition": callee,
        }
        with ir.InsertionPoint(op), op.location:
            new = ir.Operation.create(
                "stablehlo.composite", [r.type for r in op.results], list(op.operands), attributes
            )
        replace(op, new)
    del module.operation.attributes["tt.composites"]


def _make_sorts_stable(decomposition: Function) -> None:
    """Marks sorts as stable. torch-mlir's sorts may reorder equal elements, but our composites are stable."""
    for op in block(decomposition).operations:
        if op.operation.name == "stablehlo.sort":
            op.operation.attributes["is_stable"] = ir.BoolAttr.get(True)
