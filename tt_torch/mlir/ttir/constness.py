"""What is known before a program's inputs are: values that depend on parameters and constants alone."""

from __future__ import annotations

from typing import Any

from torch_mlir import ir

from tt_torch.mlir.functions import argument_kind, argument_kinds

DRAWS = ("ttir.rand", "ttnn.rand")  # without operands, and yet not the same at each run

# Weights are prepared by a handful of ops; a value with more history than this is one of the program's.
FARTHEST = 64


def is_constant(value: Any) -> bool:
    """Whether `value` is known to come from parameters, constants and creation ops only."""
    seen, pending = {value}, [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, ir.Block):
            continue
        if owner.name in DRAWS:
            return False
        fresh = [v for v in owner.operands if v not in seen]
        seen.update(fresh)
        pending += fresh
        if len(seen) > FARTHEST:
            return False
    arguments = (v for v in seen if isinstance(v.owner, ir.Block))
    return all(argument_kind(a.owner.owner, a.arg_number) != "input" for a in arguments)


def constant_values(function: Any) -> set[Any]:
    """All constant values of a function at once, for passes that ask about each op."""
    block = function.regions[0].blocks[0]
    kinds = argument_kinds(function)
    found = {a for a, kind in zip(block.arguments, kinds, strict=True) if kind != "input"}
    for op in block.operations:
        op = op.operation
        if op.name not in ("func.return", *DRAWS) and all(v in found for v in op.operands):
            found.update(op.results)
    return found
