"""sort, of one tensor or of several that are reordered together."""

from __future__ import annotations

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, producer, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.reduction import counts
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Op, Value

Key = tuple[int, bool]  # which operand decides the order, and whether the largest comes first


@RULES.rewrites("stablehlo.sort")
def sort(op: Op, b: Builder) -> list[Value] | None:
    """TTNN sorts one tensor and returns the positions, by which the other operands are gathered.

    With several keys, this sorts by the last key first: the later sorts are stable and keep its order.
    """
    dim, stable = attrs.integer(op, "dimension"), bool(ods.attr(op, "is_stable"))
    block = op.operation.regions[0].blocks[0]
    keys = _keys(list(block.operations)[-1].operands[0], list(block.arguments))
    if keys is None:
        return None
    values, order = None, None
    for i, (key, descending) in enumerate(reversed(keys)):
        x = op.operands[key] if order is None else b("ttir.gather", op.operands[key], order, dim=dim)
        values, positions = b("ttir.sort", x, dim=dim, descending=descending, stable=stable or i > 0)
        order = positions if order is None else b("ttir.gather", order, positions, dim=dim)
    others = (order if counts(x, dim) else b("ttir.gather", x, order, dim=dim) for x in op.operands)
    return [values if i == keys[0][0] else x for i, x in enumerate(others)]


@RULES.rewrites("chlo.top_k")
def top_k(op: Op, b: Builder) -> list[Value]:
    """The largest of the last dimension, in order."""
    (x,) = op.operands
    return b("ttir.topk", x, k=attrs.integer(op, "k"), dim=len(shape(x)) - 1, largest=True, sorted=True)


def _keys(condition: Value, arguments: list[Value]) -> list[Key] | None:
    """The keys of a comparator, from its result: a < b, or a < b | a == b & <the next keys>."""
    if either := producer(condition, "stablehlo.or"):
        first, both = (v for v in either.operands)
        equal = producer(both, "stablehlo.and")
        rest = equal and _keys(equal.operands[1], arguments)
        key = _key(first, arguments, "LG")
        return (
            [key, *rest]
            if equal and key and rest and _key(equal.operands[0], arguments, "E") == (key[0], False)
            else None
        )
    key = _key(condition, arguments, "LG")
    return key and [key]


def _key(condition: Value, arguments: list[Value], directions: str) -> Key | None:
    compare = producer(condition, "stablehlo.compare")
    if compare is None or (direction := attrs.direction(compare))[0] not in directions:
        return None
    places = [arguments.index(v) if v in arguments else -1 for v in map(_canonical, compare.operands)]
    if places[0] % 2 or places[1] != places[0] + 1:
        return None
    return places[0] // 2, direction[0] == "G"


def _canonical(value: Value) -> Value:
    """The value before JAX replaced all zeros by one zero and all NaNs by one NaN; the device orders them so anyway."""
    while choice := producer(value, "stablehlo.select"):
        chosen = producer(choice.operands[1], "stablehlo.constant")
        if chosen is None or producer(choice.operands[0], "stablehlo.compare") is None or _is_number(chosen):
            return value
        value = choice.operands[2]
    return value


def _is_number(constant: Op) -> bool:
    number = attrs.splat(constant.attributes["value"])
    return number != 0 and number == number
