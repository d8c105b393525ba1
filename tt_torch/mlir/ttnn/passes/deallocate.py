"""Frees each value directly after its last use. Results of const-eval and parameters stay for the next call."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir.functions import argument_kinds, main
from tt_torch.mlir.rules import Builder
from tt_torch.mlir.ttnn.layout import layout_of
from tt_torch.mlir.types import Function, Value


def deallocate(module: ir.Module) -> None:
    function = main(module)
    with module.context:
        operations = [op.operation for op in function.regions[0].blocks[0].operations]
        returned = set(operations[-1].operands)
        last = {r: op for op in operations for r in op.results}  # a result without readers is freed at once
        last |= {v: op for op in operations for v in op.operands}
        for value in _temporaries(function, operations):
            if value in last and value not in returned and layout_of(value).on_device:
                _after(last[value], value)


def _temporaries(function: Function, operations: list[ir.Operation]) -> list[Value]:
    kinds = argument_kinds(function)
    inputs = [a for a, kind in zip(function.arguments, kinds, strict=True) if kind == "input"]
    return inputs + [r for op in operations if op.name != "func.call" for r in op.results]


def _after(op: ir.Operation, value: Value) -> None:
    with ir.InsertionPoint.after(op), op.location:
        Builder()("ttnn.deallocate", value, type=[], force=False)
