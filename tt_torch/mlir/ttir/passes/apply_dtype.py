"""The data-type policy: the floating-point type in which the program computes.

Constants keep their types: const-eval computes in float32, for example a folded batch norm, and only its result is
cast. Results of the program have the types of the model. Ops of functions that lose most of their digits in bf16, such
as `lgamma` near its zeros, stay in float32.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir

from tt_torch.mlir.functions import main
from tt_torch.mlir.rules import Builder, dtype, shape, tensor
from tt_torch.mlir.ttir import dialect
from tt_torch.mlir.ttir.constness import constant_values
from tt_torch.mlir.types import Function, Op, Value
from tt_torch.wire import locations

ELEMENT = {"bf16": ir.BF16Type.get, "f32": ir.F32Type.get}
FLOATS = (ir.BF16Type, ir.F32Type)
TAKES_BOOLEANS = {f"ttir.{n}" for n in [*dialect.LOGICAL, "logical_not"]}
PREDICATES = {f"ttir.{n}" for n in [*dialect.COMPARISONS, *dialect.LOGICAL, *dialect.UNARY_PREDICATES]}


def keep_float32(module: ir.Module, nodes: Sequence[str]) -> None:
    """Notes the FX nodes whose ops compute in float32 even if the policy is bf16."""
    if not nodes:
        return
    with module.context:
        module.operation.attributes[dialect.IN_FLOAT32] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in nodes])


def apply_dtype(module: ir.Module, policy: str | None) -> None:
    """Changes the type of every floating-point value that depends on inputs to that of `policy`. None changes nothing.

    Results of comparisons stay zeros and ones in bf16, and so do values that are combined only from these.
    """
    if policy is None:
        return
    function = main(module)
    with module.context, ir.Location.unknown():
        if policy == "bf16":
            _note_ops(module, function)
        _apply(function, ELEMENT[policy]())


def _note_ops(module: ir.Module, function: Function) -> None:
    """Notes the ops of the nodes that `keep_float32` names."""
    noted = module.operation.attributes
    nodes = {name.value for name in noted[dialect.IN_FLOAT32]} if dialect.IN_FLOAT32 in noted else set()
    for op in function.regions[0].blocks[0].operations if nodes else ():
        floats = [isinstance(dtype(value), ir.F32Type) for value in (*op.operands, *op.results)]
        if any(floats) and not nodes.isdisjoint(locations.nodes(str(op.location))):
            op.attributes[dialect.IN_FLOAT32] = ir.UnitAttr.get()


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


def _keeps_width(op: Op) -> bool:
    """Whether an op reads and makes floats of 32 bits, whatever the policy is."""
    return op.name == "ttir.bitcast_convert" or dialect.IN_FLOAT32 in op.attributes


def _keep_width(op: Op, target: ir.Type) -> None:
    """Casts the operands to float32, and the results to the target type where other ops read them. The program returns
    the results as they are."""
    with op.location:
        for i, value in enumerate(op.operands):
            if isinstance(dtype(value), ir.BF16Type) and not _takes_as_it_is(op, i):
                with ir.InsertionPoint(op):
                    op.operands[i] = Builder()("ttir.typecast", value, dtype=ir.F32Type.get())
        for result in op.results:
            users = {
                use.owner for use in result.uses if not _keeps_width(use.owner) and use.owner.name != "func.return"
            }
            if users and isinstance(dtype(result), ir.F32Type) and dtype(result) != target:
                _cast_for(users, result, target)


def _cast_for(users: set[Op], value: Value, target: ir.Type) -> None:
    with ir.InsertionPoint.after(value.owner):
        cast = Builder()("ttir.typecast", value, dtype=target)
    for user in users:
        for i, operand in enumerate(user.operands):
            if operand == value:
                user.operands[i] = cast


def _takes_as_it_is(op: Op, i: int) -> bool:
    """Whether an operand is a boolean, or may have any type."""
    return op.name in TAKES_BOOLEANS or op.name == "ttir.typecast" or (op.name == "ttir.where" and i == 0)


def _cast_operands(op: ir.Operation, target: ir.Type, constant: set[Value], casts: dict[Value, Value]) -> None:
    outside = [v for v in op.operands if v in constant or isinstance(v.owner, ir.Block)]
    _cast(op, outside, target, casts)
    # Here booleans in bf16 meet floats of the target type, if the type of the model was bf16.
    if op.name not in PREDICATES and any(dtype(v) == target for v in op.operands):
        _cast(op, list(op.operands), target, casts)


def _cast(op: ir.Operation, values: list[Value], target: ir.Type, casts: dict[Value, Value]) -> None:
    """Casts the floats among `values` that `op` reads to `target`, except booleans and values that are cast already."""
    for i, value in enumerate(op.operands):
        if value not in values or not isinstance(dtype(value), FLOATS) or dtype(value) == target:
            continue
        if op.name == "ttir.typecast" or (op.name == "ttir.where" and i == 0):
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
