"""sort: of values, or of values and what goes with them."""

from __future__ import annotations

from typing import Any

from tt_torch.mlir.rules import Builder, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.reduction import counts
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES


@RULES.rewrites("stablehlo.sort")
def sort(op: Any, b: Builder) -> Any:
    """TTNN sorts one tensor and gives the positions; the other operands are gathered by these."""
    dim, stable = attrs.integer(op, "dimension"), op.operation.attributes["is_stable"].value
    compared = _compared(op)
    if compared is None:
        return None
    key, descending = compared
    values, positions = b("ttir.sort", op.operands[key], dim=dim, descending=descending, stable=stable)
    others = (positions if counts(x, dim) else b("ttir.gather", x, positions, dim=dim) for x in op.operands)
    return [values if i == key else x for i, x in enumerate(others)]


@RULES.rewrites("chlo.top_k")
def top_k(op: Any, b: Builder) -> Any:
    """The largest of the last dimension, in order."""
    (x,) = op.operands
    return b("ttir.topk", x, k=attrs.integer(op, "k"), dim=len(shape(x)) - 1, largest=True, sorted=True)


def _compared(op: Any) -> tuple[int, bool] | None:
    """Which operand decides the order, and whether the largest comes first. None for other comparators."""
    block = op.operation.regions[0].blocks[0]
    compare, *rest = (o.operation for o in block.operations)
    arguments = list(block.arguments)
    if compare.name != "stablehlo.compare" or len(rest) != 1:
        return None
    places = [arguments.index(v) if v in arguments else -1 for v in compare.operands]
    direction = attrs.direction(compare)
    if places[0] % 2 or places[1] != places[0] + 1 or direction[0] not in "LG":
        return None
    return places[0] // 2, direction[0] == "G"
