"""reduce: the op in its body says which reduction it is."""

from __future__ import annotations

from typing import Any

from torch_mlir import ir

from tt_torch.mlir.rules import Builder, dtype, producer
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES

# On booleans, which are bf16 zeros and ones, "and" is the minimum and "or" the maximum.
REDUCTIONS = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod", "and": "min", "or": "max"}


def body_op(op: Any) -> str:
    """Name of the only computing op in a region, "" when there are several."""
    ops = [o.operation.name for o in op.operation.regions[0].blocks[0].operations]
    return ops[0].split(".")[1] if len(ops) == 2 else ""


@RULES.rewrites("stablehlo.reduce")
def reduce(op: Any, b: Builder) -> Any:
    dims = attrs.ints(op, "dimensions")
    if len(op.results) == 2:
        return _argmax(op, b, dims)
    target, x = REDUCTIONS.get(body_op(op)), op.operands[0]
    if target is None or (body_op(op) in ("and", "or") and not isinstance(dtype(x), ir.BF16Type)):
        return None
    return b(f"ttir.{target}", x, dim_arg=dims)


def _argmax(op: Any, b: Builder, dims: list[int]) -> Any:
    """torch.max(dim) and argmax: values reduced together with their positions, the larger value winning."""
    x, positions = op.operands[:2]
    compares = [o for o in op.operation.regions[0].blocks[0].operations if o.operation.name == "stablehlo.compare"]
    counted = producer(positions, "ttir.arange", "ttir.broadcast", "ttir.reshape", "stablehlo.iota") is not None
    if len(dims) != 1 or not compares or not counted or attrs.direction(compares[0]) not in ("GE", "GT"):
        return None
    return [b("ttir.max", x, dim_arg=dims), b("ttir.argmax", x, dim_arg=dims)]
