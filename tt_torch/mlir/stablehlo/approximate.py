"""Replaces JAX's approximate search for the largest elements by a sort of all elements, which is exact."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir.functions import nested
from tt_torch.mlir.stablehlo.build import sliced

TARGET = "ApproxTopK"


def sort_instead(module: ir.Module) -> None:
    """Replaces each call of the search by a sort with the comparator that it names, and a slice."""
    functions = {f.name.value: f for f in module.body.operations if f.operation.name == "func.func"}
    for op in list(nested(module)):
        if op.name == "stablehlo.custom_call" and op.attributes["call_target_name"].value == TARGET:
            with module.context, ir.InsertionPoint(op), op.location:
                comparator = functions[ir.FlatSymbolRefAttr(op.attributes["called_computations"][0]).value]
                _replace(op, comparator.regions[0].blocks[0])


def _replace(op: ir.Operation, comparator: ir.Block) -> None:
    count = len(op.results)
    operands = list(op.operands)[:count]
    dim = ir.IntegerAttr(op.attributes["mhlo.backend_config"]["reduction_dim"]).value
    whole = {"dimension": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim), "is_stable": ir.BoolAttr.get(True)}
    kinds = [x.type for x in operands]
    made = ir.Operation.create("stablehlo.sort", kinds, operands, whole, regions=1)
    body = made.regions[0].blocks.append(*[x.type for x in comparator.arguments])
    values = dict(zip(comparator.arguments, body.arguments, strict=True))
    *ops, last = [each.operation for each in comparator.operations]
    with ir.InsertionPoint(body):
        for each in ops:
            clone = each.clone().operation
            for i, x in enumerate(each.operands):
                clone.operands[i] = values[x]
            values.update(zip(each.results, clone.results, strict=True))
        ir.Operation.create("stablehlo.return", [], [values[x] for x in last.operands])
    for old, new in zip(op.results, made.results, strict=True):
        sizes = old.type.shape
        old.replace_all_uses_with(sliced(new, [0] * len(sizes), sizes))
    op.erase()
