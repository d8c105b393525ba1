"""Hoists ops that depend only on parameters and constants into functions that run once.

Each connected group of such ops becomes a private function `main_const_eval_<n>`. A `func.call` replaces it, which is a
LoadCachedOp in the binary: the results stay on the device. Creation ops have no operands and would connect all groups
that use them, so each group gets its own copy of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.functions import VARYING, call, main, mark_arguments, private_function
from tt_torch.mlir.ttir.constness import constant_values
from tt_torch.mlir.types import Function, Op, Value


def hoist_const_eval(module: ir.Module, parameters: bool) -> None:
    """Hoists what depends only on constants and, with `parameters`, also on parameters."""
    function = main(module)
    with module.context, ir.Location.unknown():
        constant = constant_values(function, VARYING if parameters else (*VARYING, "parameter"))
        first = function.regions[0].blocks[0].operations[0]  # results must come before all their uses
        for number, group in enumerate(_groups(function, constant)):
            _hoist(module, first, group, constant, f"main_const_eval_{number}")
        _erase_unused(function)


def _is_creation(op: ir.Operation) -> bool:
    return not len(op.operands)


def _operations(function: Function) -> Iterable[ir.Operation]:
    return (op.operation for op in function.regions[0].blocks[0].operations)


def _outside_uses(op: ir.Operation, constant: set[Value]) -> list[Value]:
    """The results of a constant op that ops outside of const-eval read."""
    return [r for r in op.results if any(not _in(u.owner.operation, constant) for u in r.uses)]


def _in(op: ir.Operation, constant: set[Value]) -> bool:
    return len(op.results) > 0 and op.results[0] in constant


def _groups(function: Function, constant: set[Value]) -> list[list[ir.Operation]]:
    """Connected groups of constant ops, in program order. A creation op that is read outside is a group of its own."""
    group_of: dict[ir.Operation, list[ir.Operation]] = {}
    groups = []
    for op in _operations(function):
        if not _in(op, constant):
            continue
        if _is_creation(op):
            if _outside_uses(op, constant):
                groups.append([op])
            continue
        joined = [op]
        for value in op.operands:
            other = group_of.get(value.owner.operation) if not isinstance(value.owner, ir.Block) else None
            if other is not None and other is not joined:
                joined[:0] = other
                groups.remove(other)
                group_of.update(dict.fromkeys(other, joined))
        for member in joined:
            group_of[member] = joined
        groups.append(joined)
    order = {op: i for i, op in enumerate(_operations(function))}
    return [sorted(g, key=order.__getitem__) for g in groups if any(_outside_uses(op, constant) for op in g)]


def _hoist(module: ir.Module, first: Op, group: list[ir.Operation], constant: set[Value], name: str) -> None:
    arguments = list(dict.fromkeys(v for op in group for v in op.operands if isinstance(v.owner, ir.Block)))
    results = [r for op in group for r in _outside_uses(op, constant)]
    with group[-1].location:
        hoisted = private_function(module, name, [a.type for a in arguments], [r.type for r in results])
    block = hoisted.regions[0].blocks.append(*[a.type for a in arguments])
    mark_arguments(hoisted, ["parameter"] * len(arguments))
    _clone(block, group, dict(zip(arguments, block.arguments, strict=True)), results)
    with ir.InsertionPoint(first), group[-1].location:
        loaded = call(name, arguments, [r.type for r in results])
    for old, new in zip(results, loaded.results, strict=True):
        _replace_outside(old, new, constant)


def _clone(block: ir.Block, group: list[ir.Operation], mapped: dict[Value, Value], results: list[Value]) -> None:
    """Copies the group, and the creation ops that it reads, into the function."""
    with ir.InsertionPoint(block):
        for op in group:
            for value in op.operands:
                if value not in mapped:
                    _copy(value.owner.operation, mapped)
            _copy(op, mapped)
        with group[-1].location:
            ir.Operation.create("func.return", [], [mapped[r] for r in results])


def _copy(op: ir.Operation, mapped: dict[Value, Value]) -> None:
    with op.location:
        attributes = {name: op.attributes[name] for name in op.attributes}
        operands = [mapped[v] for v in op.operands]
        copy = ir.Operation.create(op.name, [r.type for r in op.results], operands, attributes)
    mapped.update(zip(op.results, copy.results, strict=True))


def _replace_outside(old: Value, new: Value, constant: set[Value]) -> None:
    for use in list(old.uses):
        user = use.owner.operation
        if not _in(user, constant):
            user.operands[use.operand_number] = new


def _erase_unused(function: Function) -> None:
    for op in reversed(list(_operations(function))):
        if op.name in ods.OPS and op.results and not any(True for r in op.results for _ in r.uses):
            op.erase()
