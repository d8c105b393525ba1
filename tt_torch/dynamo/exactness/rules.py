"""The interval of an op's results, from the intervals of its operands: one rule per op family.

Without a rule, the result may be any value of the dtype. For floats, only finite intervals are known, and a known
interval means that there is no NaN. For example, `x + y` with x in 0 .. 3 and y in -1 .. 5 is in -1 .. 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import TypeAlias

import torch
from torch.fx import Node

from tt_torch.dynamo import composites, facts, mesh_ops
from tt_torch.dynamo.exactness.interval import ANYTHING, BIT, ZERO, Interval, hull
from tt_torch.dynamo.facts import ByOp, Fact
from tt_torch.dynamo.passes.rewriting import value
from tt_torch.dynamo.types import Argument, Arguments
from tt_torch.torch_private.ops import schema

aten = torch.ops.aten
LARGEST_POWER = 128  # larger exponents would only give numbers with very many digits

# A rule gets a node, its arguments by schema name, and a function that gives the interval of an argument. It returns
# one interval for all results of the op, or one for each.
Of: TypeAlias = Callable[[Argument], Interval]
Rule: TypeAlias = Callable[[Node, Arguments, Of], Interval | tuple[Interval, ...]]
RULES = ByOp[Rule]()


def _count(node: Node) -> int:
    """The number of elements of a result."""
    return value(node).numel()


# --- elements that stay what they are


@RULES(Fact.KEEPS)
def kept(node: Node, a: Arguments, of: Of) -> Interval | tuple[Interval, ...]:
    """Elements of the operands. This rule ignores the range of the result's dtype: `held` applies it later.

    `torch.where(condition, x, 7)` of x in 0 .. 3 gives 0 .. 7.
    """
    known = facts.of(node.target)
    if a.get("accumulate") or a.get("reduce"):
        return accumulated(node, a, of)
    given = [a[name] for name in facts.value_arguments(node.target) if a[name] is not None]
    operands = [v for item in given for v in (item if isinstance(item, (list, tuple)) else [item])]
    found = reduce(or_, map(of, operands))
    found = found | ZERO if Fact.ZEROS in known else found
    found = whole_numbers(found) if not value(node).is_floating_point() else found
    if Fact.AND_POSITIONS in known and len(schema(node.target).returns) == 2:
        return found, Interval(0, max(0, _count(a["self"]) - 1))
    return found


def whole_numbers(x: Interval) -> Interval:
    """The next integers below and above, for all kinds of rounding: 0.5 .. 2.5 gives 0 .. 3."""
    return Interval(math.floor(x.low), math.ceil(x.high)) if math.isfinite(x.high - x.low) else x


@RULES(aten.ceil, aten.floor, aten.round, aten.trunc)
def whole(node: Node, a: Arguments, of: Of) -> Interval:
    """`round` of 0.5 .. 2.5 is in 0 .. 3."""
    return whole_numbers(of(a["self"]))


@RULES(Fact.POSITIONS)
def places(node: Node, a: Arguments, of: Of) -> Interval:
    """Positions and counts in 12 elements are in -1 .. 12."""
    if value(node).is_floating_point():
        return ANYTHING  # `bincount` of weights is their sum
    return Interval(-1, max(_count(n) for n in node.all_input_nodes))


# --- new tensors


@RULES(Fact.FILLS, Fact.ALLOCATES, aten.eye)
def filled(node: Node, a: Arguments, of: Of) -> Interval:
    """One number, or zeros and ones: `full` of 7 is 7 .. 7. An `empty` tensor may have any values, so it may have
    these."""
    return next((of(a[name]) for name in ("fill_value", "value", "s") if name in a), BIT)


@RULES(aten.arange)
def sequence(node: Node, a: Arguments, of: Of) -> Interval:
    """`arange(2, 10)` is in 2 .. 10."""
    return hull(a.get("start") or 0, a["end"])


# --- arithmetic


@RULES(aten.add)
def add(node: Node, a: Arguments, of: Of) -> Interval:
    """0 .. 3 plus -1 .. 5 is in -1 .. 8, and with alpha=2 in -2 .. 13."""
    return of(a["self"]).plus(of(a["other"]).times(of(a["alpha"])))


@RULES(aten.sub)
def subtract(node: Node, a: Arguments, of: Of) -> Interval:
    """0 .. 3 minus -1 .. 5 is in -5 .. 4."""
    return of(a["self"]).plus(-of(a["other"]).times(of(a["alpha"])))


@RULES(aten.rsub)
def subtract_from(node: Node, a: Arguments, of: Of) -> Interval:
    """The second operand minus the first one: -1 .. 5 minus 0 .. 3 is in -4 .. 5."""
    return of(a["other"]).plus(-of(a["self"]).times(of(a["alpha"])))


@RULES(aten.mul)
def multiply(node: Node, a: Arguments, of: Of) -> Interval:
    """-2 .. 3 times 4 .. 5 is in -10 .. 15."""
    return of(a["self"]).times(of(a["other"]))


@RULES(aten.pow)
def power(node: Node, a: Arguments, of: Of) -> Interval:
    """-3 .. 2 to the power of 2 is in 0 .. 9, and 2 .. 3 to the power of 1 .. 4 in 1 .. 81."""
    exponent = a.get("exponent")
    if isinstance(exponent, int) and 0 <= exponent <= LARGEST_POWER:
        return _power(of(a["self"]), exponent)
    base, up = of(a["self"]), of(exponent)
    if min(base) >= 0 and min(up) >= 0 and up.high <= LARGEST_POWER:
        return Interval(min(1, base.low), max(1, base.high**up.high))
    return ANYTHING


def _power(base: Interval, exponent: int) -> Interval:
    """-3 .. 2 to the power of 3 is in -27 .. 8."""
    return hull(base.low**exponent, base.high**exponent, 0 if base.low <= 0 <= base.high else base.low**exponent)


@RULES(aten.neg)
def negate(node: Node, a: Arguments, of: Of) -> Interval:
    """The negative of -3 .. 2 is in -2 .. 3."""
    return -of(a["self"])


@RULES(aten.abs)
def absolute(node: Node, a: Arguments, of: Of) -> Interval:
    """The absolute value of -3 .. 2 is in 0 .. 3."""
    x = of(a["self"])
    return Interval(0 if x.low <= 0 <= x.high else min(abs(v) for v in x), max(abs(v) for v in x))


@RULES(aten.relu)
def positive(node: Node, a: Arguments, of: Of) -> Interval:
    """`relu` of -3 .. 2 is in 0 .. 2."""
    return _between(of(a["self"]), 0, math.inf)


@RULES(aten.hardtanh)
def limited(node: Node, a: Arguments, of: Of) -> Interval:
    """`hardtanh` of -3 .. 2 with the ends -1 and 1 is in -1 .. 1, and with the ends 5 and 9 it is 5."""
    return _between(of(a["self"]), a["min_val"], a["max_val"])


def _between(x: Interval, low: float, high: float) -> Interval:
    """The interval of elements of `x` that are moved between two ends. An operand that may be NaN stays unknown."""
    return Interval(*(min(max(v, low), high) for v in x)) if math.isfinite(x.high - x.low) else x


@RULES(aten.sign, aten.sgn)
def sign(node: Node, a: Arguments, of: Of) -> Interval:
    """All signs are in -1 .. 1."""
    return Interval(-1, 1)


@RULES(aten.clamp, aten.clamp_min, aten.clamp_max)
def clamp(node: Node, a: Arguments, of: Of) -> Interval:
    """-3 .. 2 with the lower bound 0 is in 0 .. 2."""
    x = of(a["self"])
    if value(node).dtype.is_floating_point and x == ANYTHING:
        return x  # NaN stays NaN
    low, high = x
    if (bound := a.get("min")) is not None:
        low, high = max(low, of(bound).low), max(high, of(bound).high)
    if (bound := a.get("max")) is not None:
        low, high = min(low, of(bound).low), min(high, of(bound).high)
    return Interval(low, high)


@RULES(aten.maximum, aten.minimum)
def extreme(node: Node, a: Arguments, of: Of) -> Interval:
    """The maximum of -1 .. 5 and 0 .. 3 is in 0 .. 5, the minimum in -1 .. 3."""
    x, y = of(a["self"]), of(a["other"])
    choose = max if facts.packet(node.target) is aten.maximum else min
    return Interval(choose(x.low, y.low), choose(x.high, y.high))


@RULES(aten.div)
def divide(node: Node, a: Arguments, of: Of) -> Interval:
    """The quotient is largest for the divisors nearest to zero on either side. A divisor of zero gives infinity or NaN.

    6 .. 9 divided by 2 .. 3 is in 2 .. 4.5.
    """
    x, y = of(a["self"]), of(a["other"])
    if value(node).is_floating_point():
        bad = y.low <= 0 <= y.high or ANYTHING in (x, y)
        return ANYTHING if bad else hull(*(v / d for v in x for d in y))
    near = [v for v in (*y, -1, 1) if v and y.low <= v <= y.high]
    return hull(*(q for v in x for d in near for q in (v // d, -(-v // d)))) if near else ANYTHING


@RULES(aten.remainder)
def remainder(node: Node, a: Arguments, of: Of) -> Interval:
    """`x % 5` is in 0 .. 5."""
    x, y = of(a["self"]), of(a["other"])
    if x == ANYTHING or (value(node).dtype.is_floating_point and y.low <= 0 <= y.high):
        return ANYTHING
    return Interval(min(0, y.low), max(0, y.high))  # the result has the sign of the divisor


# --- bits


def _mask(*operands: Interval) -> int:
    """The largest number with as many bits as the operands need: 7 for 0 .. 5."""
    return 2 ** max(int(v).bit_length() for x in operands for v in x) - 1


@RULES(aten.bitwise_and, aten.bitwise_or, aten.bitwise_xor)
def bitwise(node: Node, a: Arguments, of: Of) -> Interval:
    """`x & 6` is in 0 .. 6, and `x | y` with 0 .. 5 and 0 .. 2 in 0 .. 7."""
    x, y = of(a["self"]), of(a["other"])
    if facts.packet(node.target) is aten.bitwise_and and max(x.low, y.low) >= 0:
        return Interval(0, min(v.high for v in (x, y) if v.low >= 0))
    return Interval(0 if min(x.low, y.low) >= 0 else -_mask(x, y) - 1, _mask(x, y))


@RULES(aten.bitwise_not)
def invert(node: Node, a: Arguments, of: Of) -> Interval:
    """`~x` with 0 .. 3 is in -4 .. -1."""
    x = of(a["self"])
    return BIT if value(node).dtype is torch.bool else Interval(-x.high - 1, -x.low - 1)


@RULES(aten.bitwise_left_shift)
def shift_left(node: Node, a: Arguments, of: Of) -> Interval:
    """0 .. 3 shifted by 0 .. 2 bits is in 0 .. 12. A shift by a negative number of bits gives zero."""
    most = of(a["other"]).high
    return of(a["self"]).times(Interval(0, 2 ** max(most, 0))) if most < 64 else ANYTHING


@RULES(aten.bitwise_right_shift)
def shift_right(node: Node, a: Arguments, of: Of) -> Interval:
    """-8 .. 3 stays within -8 .. 3, and 2 .. 3 may become 0."""
    x = of(a["self"])
    return Interval(min(x.low, 0), max(x.high, 0))


@RULES(composites.logical_right_shift)
def shift_in_zeros(node: Node, a: Arguments, of: Of) -> Interval:
    """After a shift by 28 of 32 bits, 4 bits are left, so the result is in 0 .. 15."""
    return Interval(0, 2 ** (32 - a["bits"]) - 1)


# --- sums


def _many(x: Interval, count: int) -> Interval:
    """The interval of sums of up to `count` values: up to 4 values in -1 .. 2 give -4 .. 8."""
    return Interval(min(0, x.low * count), max(0, x.high * count)) if math.isfinite(x.high - x.low) else x


def _together(node: Node, a: Arguments) -> int:
    """The number of elements that a reduction combines, or a scan at its end: 3 for (2, 3) along dimension 1."""
    x = value(a["self"])
    if isinstance(a.get("dim"), int):
        return x.shape[a["dim"]] if x.dim() else 1
    return x.numel() // max(1, _count(node))


@RULES(aten.sum, aten.cumsum)
def total(node: Node, a: Arguments, of: Of) -> Interval:
    """The sum of 4 elements in -1 .. 2 is in -4 .. 8."""
    return _many(of(a["self"]), _together(node, a))


@RULES(mesh_ops.all_reduce, mesh_ops.reduce_scatter)
def of_chips(node: Node, a: Arguments, of: Of) -> Interval:
    """The sum over 2 chips of -1 .. 2 is in -2 .. 4, and the maximum in -1 .. 2."""
    x = of(a["self"])
    if a["reduce"] in ("max", "min"):
        return x
    return _many(x, a["count"]) if a["reduce"] == "sum" else _product(x, a["count"])


@RULES(Fact.PRODUCTS)
def product(node: Node, a: Arguments, of: Of) -> Interval:
    """The product of 3 elements in 0 .. 2 is in -8 .. 8."""
    return _product(of(a["self"]), _together(node, a))


def _product(x: Interval, count: int) -> Interval:
    """The interval of products of up to `count` values: up to 3 values in 0 .. 2 give -8 .. 8."""
    size = max(abs(v) for v in x)
    if size <= 1:
        return Interval(-size, size) | BIT
    return Interval(-(size**count), size**count) | BIT if count <= LARGEST_POWER and size < math.inf else ANYTHING


@RULES(aten.mm, aten.bmm, aten.dot, aten.mv)
def matmul(node: Node, a: Arguments, of: Of) -> Interval:
    """Rows of 4 elements in 0 .. 2 times columns in -1 .. 3 are in -8 .. 24."""
    left, right = node.all_input_nodes[0], node.all_input_nodes[-1]
    return _many(of(left).times(of(right)), value(left).shape[-1])


@RULES(aten.addmm, aten.baddbmm)
def add_matmul(node: Node, a: Arguments, of: Of) -> Interval:
    """10 .. 10 plus rows of 4 elements in 0 .. 2 times columns in -1 .. 3 is in 2 .. 34."""
    first, left, right = (v for v in a.values() if isinstance(v, Node))
    product = _many(of(left).times(of(right)), value(left).shape[-1])
    return of(first).times(of(a["beta"])).plus(product.times(of(a["alpha"])))


@RULES(aten.scatter_add, aten.scatter_reduce)
def accumulated(node: Node, a: Arguments, of: Of) -> Interval:
    """Each element may get the sum of the whole source, or its largest or smallest element.

    Three values of 0 .. 2 that are added to ones give 1 .. 7.
    """
    if a.get("reduce") not in (None, "sum", "amax", "amin"):
        return ANYTHING
    source = a["src"] if "src" in a else a["values"]
    if a.get("reduce") in ("amax", "amin"):
        return of(a["self"]) | of(source)
    return of(a["self"]).plus(_many(of(source), _count(source)))


@RULES(aten.sigmoid, aten._softmax, aten.tanh, aten.sin, aten.cos, aten.erf)
def unit(node: Node, a: Arguments, of: Of) -> Interval:
    """The sine of -9 .. 9 is in -1 .. 1. For an infinity it would be NaN."""
    return Interval(-1, 1) if math.isfinite(sum(map(abs, of(node.all_input_nodes[0])))) else ANYTHING
