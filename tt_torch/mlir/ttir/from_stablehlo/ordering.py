"""sort, of one tensor or of several that are reordered together."""

from __future__ import annotations

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, producer, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.arranging import part
from tt_torch.mlir.ttir.from_stablehlo.creation import splat_of
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
    keys = sort_keys(list(block.operations)[-1].operands[0], list(block.arguments))
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
    """The `k` largest elements of the last dimension, with the largest first, and their positions."""
    (x,) = op.operands
    return extremes(b, x, attrs.integer(op, "k"), True)


def extremes(b: Builder, x: Value, count: int, largest: bool) -> list[Value]:
    """The largest or smallest elements of the last dimension, and their positions.

    Of equal elements, that with the lowest position comes first. `ttir.topk` leaves their order open, so this sorts.
    """
    dim = len(shape(x)) - 1
    return [part(b, v, dim, 0, count) for v in b("ttir.sort", x, dim=dim, descending=largest, stable=True)]


def sort_keys(condition: Value, arguments: list[Value]) -> list[Key] | None:
    """The keys of a comparator, from its result: a < b, or a < b | a == b & <the next keys>."""
    if either := producer(condition, "stablehlo.or"):
        first, both = (v for v in either.operands)
        equal = producer(both, "stablehlo.and")
        rest = equal and sort_keys(equal.operands[1], arguments)
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
    """The value before JAX replaced all zeros by one zero and all NaNs by one NaN. The device itself treats them so."""
    while choice := producer(value, "stablehlo.select"):
        condition, chosen, other = choice.operands
        if not _finds(producer(condition, "stablehlo.compare"), _number(chosen), other):
            return value
        value = other
    return value


def _finds(compare: Op | None, number: float | None, x: Value) -> bool:
    """Whether a comparison finds the zeros of `x`, if the number is zero, or the NaNs of `x`, if the number is NaN."""
    if compare is None or number is None or _canonical(compare.operands[0]) != _canonical(x):
        return False
    left, right = compare.operands
    if number == 0:
        return attrs.direction(compare) == "EQ" and _number(right) == 0
    return number != number and attrs.direction(compare) == "NE" and left == right


def _number(value: Value) -> float | None:
    """The value of a constant; None for other values. Outside of the comparator, a constant is a full already."""
    if constant := producer(value, "stablehlo.constant"):
        return attrs.splat(constant.attributes["value"])
    return splat_of(value)
