"""The data-type policy: the floating-point type in which the program computes.

Constants keep their types: const-eval computes in float32, for example a folded batch norm, and only its result is
cast. Results of the program have the types of the model.
"""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir.functions import main
from tt_torch.mlir.rules import Builder, dtype, shape, tensor
from tt_torch.mlir.ttir import dialect
from tt_torch.mlir.ttir.constness import constant_values
from tt_torch.mlir.types import Function, Value

ELEMENT = {"bf16": ir.BF16Type.get, "f32": ir.F32Type.get}
FLOATS = (ir.BF16Type, ir.F32Type)
PREDICATES = {f"ttir.{n}" for n in [*dialect.COMPARISONS, *dialect.LOGICAL, *dialect.UNARY_PREDICATES]}


def apply_dtype(module: ir.Module, policy: str | None) -> None:
    """Changes the type of every floating-point value that depends on inputs to that of `policy`. None changes nothing.

    Results of comparisons stay zeros and ones in bf16, and so do values that are combined only from these.
    """
    if policy is None:
        return
    function = main(module)
    with module.context, ir.Location.unknown():
        _apply(function, ELEMENT[policy]())


def _apply(function: Function, target: ir.Type) -> None:
    constant = constant_values(function)
    casts: dict[Value, Value] = {}
    for op in list(function.regions[0].blocks[0].operations):
        op = op.operation
        results = list(op.results)
        if op.name == "func.return":
            _restore(op, function)
        elif _keeps_width(op) and results[0] not in constant:
            _keep_width(op, target)
        elif not results or results[0] not in constant:
            with ir.InsertionPoint(op), op.location:
                _cast_operands(op, target, constant, casts)
            _retype(op, target)
            if op.name == "ttir.typecast" and op.operands[0].type == op.results[0].type:
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()


def _keeps_width(op: ir.Operation) -> bool:
    """Whether an op reads and makes floats of 32 bits, whatever the policy is."""
    return op.name == "ttir.bitcast_convert" or dialect.IN_FLOAT32 in op.attributes


def _keep_width(op: ir.Operation, target: ir.Type) -> None:
    """Casts the operands to float32, and the result to the target type where other ops read it."""
    (result,), wide = op.results, ir.F32Type.get()
    with op.location:
        for i, operand in enumerate(op.operands):
            if isinstance(dtype(operand), ir.BF16Type):
                with ir.InsertionPoint(op):
                    op.operands[i] = Builder()("ttir.typecast", operand, dtype=wide)
        users = {use.owner for use in result.uses if not _keeps_width(use.owner)}
        if users and dtype(result) == wide != target:
            with ir.InsertionPoint.after(op):
                cast = Builder()("ttir.typecast", result, dtype=target)
            for user in users:
                for i, value in enumerate(user.operands):
                    if value == result:
                        user.operands[i] = cast


def _cast_operands(op: ir.Operation, target: ir.Type, constant: set[Value], casts: dict[Value, Value]) -> None:
    outside = [v for v in op.operands if v in constant or isinstance(v.owner, ir.Block)]
    _cast(op, outside, target, casts)
    # Here booleans in bf16 meet floats of the target type, if the type of the model was bf16.
    if op.name not in PREDICATES and any(dtype(v) == target for v in op.operands):
        _cast(op, list(op.operands), target, casts)


def _cast(op: ir.Operation, values: list[Value], target: ir.Type, casts: dict[Value, Value]) -> None:
    """Casts the floats among `values` that `op` reads to `target`, except booleans and values that are cast already."""
    for i, value in enumerate(op.operands):
        as_it_is = op.name == "ttir.typecast" or (op.name == "ttir.where" and i == 0)
        if as_it_is or value not in values or not isinstance(dtype(value), FLOATS) or dtype(value) == target:
            continue
        if value not in casts:
            casts[value] = Builder()("ttir.typecast", value, dtype=target)
        op.operands[i] = casts[value]


def _retype(op: ir.Operation, target: ir.Type) -> None:
    wide = [r for r in op.results if isinstance(dtype(r), ir.F32Type if target == ir.BF16Type.get() else ir.BF16Type)]
    if op.name in PREDICATES:
        return
    if isinstance(target, ir.F32Type) and all(isinstance(dtype(v), ir.BF16Type) for v in op.operands):
        wide = []  # booleans
    for result in wide:
        result.set_type(tensor(shape(result), target))
        if op.name == "ttir.typecast":
            op.attributes["dtype"] = ir.TypeAttr.get(target)


def _restore(op: ir.Operation, function: Function) -> None:
    """Casts the results of the function to the types in its signature."""
    promised = function.attributes["function_type"].value.results
    for i, value in enumerate(op.operands):
        if value.type != promised[i]:
            with ir.InsertionPoint(op), op.location:
                op.operands[i] = Builder()("ttir.typecast", value, dtype=promised[i].element_type)
