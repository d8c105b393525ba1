"""Between which values an op's results lie, given those of its operands: one rule per op family.

An op without a rule may give anything that its dtype holds. Of floats only finite ranges are known, and a known
range means that there is no NaN either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node

from tt_torch.dynamo.exactness.interval import ANYTHING, BIT, ZERO, Interval, hull
from tt_torch.dynamo.passes.rewriting import value

LARGEST_POWER = 128  # exponents above it are not worth a number of so many digits

# A rule gets a node, its arguments by schema name, and what gives the interval of one that is a node or a number.
Of = Callable[[Any], Interval]
Rule = Callable[[Node, dict[str, Any], Of], Any]
RULES: dict[str, Rule] = {}  # by the op's name without its overload


def rule(names: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names.split(), function))
        return function

    return register


def _first(a: dict[str, Any]) -> Any:
    """The tensor that an op works on, whatever its schema calls it."""
    return next(v for v in a.values() if isinstance(v, Node))


def _count(node: Node) -> int:
    return value(node).numel()


@rule(
    "view _unsafe_view reshape permute transpose t expand squeeze unsqueeze slice select clone alias detach contiguous "
    "_to_copy convert_element_type flip roll gather index index_select _unsafe_index embedding repeat "
    "repeat_interleave as_strided diagonal unfold lift_fresh_copy narrow unflatten flatten movedim amax amin take "
    "expand_as view_as positive split split_with_sizes chunk unbind masked_select "
    "tensor_split channel_shuffle pixel_shuffle rot90"
)
def same_values(node: Node, a: dict[str, Any], of: Of) -> Interval:
    """What is moved or picked; conversions to other types are the business of the result's dtype."""
    found = of(_first(a))
    return whole_numbers(found) if "float" not in str(value(node).dtype) else found


@rule("ceil floor round trunc")
def whole(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return whole_numbers(of(a["self"]))


def whole_numbers(x: Interval) -> Interval:
    """Up to the next integers, whichever way they are rounded."""
    return Interval(math.floor(x.low), math.ceil(x.high)) if math.isfinite(x.high - x.low) else x


OPERANDS = ("self", "input", "other", "src", "source", "value", "values", "tensors", "fill")


@rule(
    "cat stack where masked_fill scatter index_put select_scatter slice_scatter copy index_copy index_fill put pad "
    "masked_scatter constant_pad_nd tril triu diag_embed im2col _unsafe_index_put diagonal_scatter "
    "_unsafe_masked_index _unsafe_masked_index_put_accumulate"
)
def any_of(node: Node, a: dict[str, Any], of: Of) -> Interval:
    """Elements of one operand or the other, and zero where there is but one."""
    if a.get("accumulate") or "accumulate" in str(node.target):
        return accumulated(node, a, of)
    given = [a[name] for name in OPERANDS if a.get(name) is not None]
    operands = [v for item in given for v in (item if isinstance(item, (list, tuple)) else [item])]
    found = ZERO if len(given) == 1 and "tensors" not in a else of(operands[0])
    for operand in operands:
        found |= of(operand)
    return found


@rule("sort topk kthvalue median mode cummax cummin max min nanmedian max_pool2d_with_indices max_pool3d_with_indices "
      "adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d aminmax")  # fmt: skip
def values_and_places(node: Node, a: dict[str, Any], of: Of) -> Any:
    """The values of the operand, and where they were."""
    if len(node.target._schema.returns) == 1:  # type: ignore[union-attr]
        return of(_first(a)) if a.get("other") is None else of(a["self"]) | of(a["other"])
    places = Interval(0, max(0, _count(_first(a)) - 1))
    return (of(_first(a)), of(_first(a)) if "aminmax" in str(node.target) else places)


@rule("argmax argmin argsort nonzero count_nonzero bucketize searchsorted nonzero_static bincount multinomial")
def places(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return Interval(-1, max(_count(n) for n in node.all_input_nodes))


@rule("full full_like new_full scalar_tensor fill")
def filled(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return of(next(a[name] for name in ("fill_value", "value", "s") if name in a))


@rule("zeros zeros_like new_zeros ones ones_like new_ones eye empty empty_like new_empty")
def bits(node: Node, a: dict[str, Any], of: Of) -> Interval:
    """What is empty may hold anything, so also this."""
    return BIT


@rule("arange")
def sequence(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return hull(a.get("start") or 0, a["end"])


@rule("iota")
def iota(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return hull(a["start"], a["start"] + a["step"] * a["length"])


@rule("randint randint_like")
def random(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return hull(a.get("low") or 0, a["high"] - 1)


# --- arithmetic


@rule("add")
def add(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return of(a["self"]).plus(of(a["other"]).times(of(a["alpha"])))


@rule("sub")
def subtract(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return of(a["self"]).plus(-of(a["other"]).times(of(a["alpha"])))


@rule("rsub")
def subtract_from(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return of(a["other"]).plus(-of(a["self"]).times(of(a["alpha"])))


@rule("mul")
def multiply(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return of(a["self"]).times(of(a["other"]))


@rule("square")
def square(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return _power(of(a["self"]), 2)


@rule("pow")
def power(node: Node, a: dict[str, Any], of: Of) -> Interval:
    exponent = a.get("exponent")
    if isinstance(exponent, int) and 0 <= exponent <= LARGEST_POWER:
        return _power(of(a["self"]), exponent)
    base, up = of(a["self"]), of(exponent)
    if min(base) >= 0 and min(up) >= 0 and up.high <= LARGEST_POWER:
        return Interval(min(1, base.low), max(1, base.high**up.high))
    return ANYTHING


def _power(base: Interval, exponent: int) -> Interval:
    return hull(base.low**exponent, base.high**exponent, 0 if base.low <= 0 <= base.high else base.low**exponent)


@rule("neg")
def negate(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return -of(a["self"])


@rule("abs")
def absolute(node: Node, a: dict[str, Any], of: Of) -> Interval:
    x = of(a["self"])
    return Interval(0 if x.low <= 0 <= x.high else min(abs(v) for v in x), max(abs(v) for v in x))


@rule("relu relu6 hardtanh")
def positive(node: Node, a: dict[str, Any], of: Of) -> Interval:
    x = of(a["self"])
    return hull(max(x.low, min(0, a.get("min_val") or 0)), max(x.high, 0)) if math.isfinite(x.high - x.low) else x


@rule("sign sgn")
def sign(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return Interval(-1, 1)


@rule("clamp clamp_min clamp_max clip")
def clamp(node: Node, a: dict[str, Any], of: Of) -> Interval:
    x = of(a["self"])
    if value(node).dtype.is_floating_point and x == ANYTHING:
        return x  # NaN stays NaN
    low, high = x
    if (bound := a.get("min")) is not None:
        low, high = max(low, of(bound).low), max(high, of(bound).high)
    if (bound := a.get("max")) is not None:
        low, high = min(low, of(bound).low), min(high, of(bound).high)
    return Interval(low, high)


@rule("maximum minimum fmax fmin")
def extreme(node: Node, a: dict[str, Any], of: Of) -> Interval:
    x, y = of(a["self"]), of(a["other"])
    choose = max if "max" in str(node.target) else min
    return ANYTHING if ANYTHING in (x, y) else Interval(choose(x.low, y.low), choose(x.high, y.high))


@rule("div floor_divide true_divide")
def divide(node: Node, a: dict[str, Any], of: Of) -> Interval:
    """Largest where the divisor is nearest to zero, on either side; rounded either way."""
    x, y = of(a["self"]), of(a["other"])
    whole = type(x.low) is type(x.high) is type(y.low) is type(y.high) is int
    near = [v for v in (*y, -1, 1) if v and y.low <= v <= y.high]
    if not near or (not whole and (y.low <= 0 <= y.high or ANYTHING in (x, y))):
        return ANYTHING
    if whole:
        return hull(*(q for v in x for d in near for q in (v // d, -(-v // d))))
    return whole_numbers(hull(*(v / d for v in x for d in near)))


@rule("remainder fmod")
def remainder(node: Node, a: dict[str, Any], of: Of) -> Interval:
    x, y = of(a["self"]), of(a["other"])
    if ANYTHING in (x, y) or (value(node).dtype.is_floating_point and y.low <= 0 <= y.high):
        return ANYTHING
    size = max(abs(v) for v in y)
    signs = y if "remainder" in str(node.target) else x  # the sign is that of the divisor, or of the dividend
    return Interval(-size if signs.low < 0 else 0, size if signs.high > 0 else 0)


# --- bits


def _mask(*operands: Interval) -> int:
    """The largest number of as many bits as the operands need."""
    size = max(max(abs(int(v)) for v in x) if math.isfinite(x.high - x.low) else 2**64 for x in operands)
    return 2 ** size.bit_length() - 1


@rule("bitwise_and __and__ bitwise_or __or__ bitwise_xor __xor__")
def bitwise(node: Node, a: dict[str, Any], of: Of) -> Interval:
    x, y = of(a["self"]), of(a["other"])
    if "and" in str(node.target) and max(x.low, y.low) >= 0:
        return Interval(0, min(v.high for v in (x, y) if v.low >= 0))
    return Interval(0 if min(x.low, y.low) >= 0 else -_mask(x, y) - 1, _mask(x, y))


@rule("bitwise_not")
def invert(node: Node, a: dict[str, Any], of: Of) -> Interval:
    x = of(a["self"])
    return BIT if value(node).dtype is torch.bool else Interval(-x.high - 1, -x.low - 1)


@rule("__lshift__ bitwise_left_shift")
def shift_left(node: Node, a: dict[str, Any], of: Of) -> Interval:
    """By a negative number of bits, all are shifted out."""
    most = of(a["other"]).high
    return of(a["self"]).times(Interval(0, 2 ** max(most, 0))) if most < 64 else ANYTHING


@rule("__rshift__ bitwise_right_shift")
def shift_right(node: Node, a: dict[str, Any], of: Of) -> Interval:
    x = of(a["self"])
    return Interval(min(x.low, 0), max(x.high, 0))


@rule("logical_right_shift")
def shift_in_zeros(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return Interval(0, 2 ** (32 - a["bits"]) - 1)


# --- sums


def _many(x: Interval, count: int) -> Interval:
    """Sums of up to `count` values."""
    return Interval(min(0, x.low * count), max(0, x.high * count)) if math.isfinite(x.high - x.low) else x


def _together(node: Node, a: dict[str, Any]) -> int:
    """How many elements a reduction, or a scan at its end, takes together."""
    x = value(a["self"])
    if isinstance(a.get("dim"), int):
        return x.shape[a["dim"]] if x.dim() else 1
    return x.numel() // max(1, _count(node))


@rule("sum cumsum")
def total(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return _many(of(a["self"]), _together(node, a))


@rule("prod cumprod")
def product(node: Node, a: dict[str, Any], of: Of) -> Interval:
    size, count = max(abs(v) for v in of(a["self"])), _together(node, a)
    if size <= 1:
        return Interval(-size, size) | BIT
    return Interval(-(size**count), size**count) | BIT if count <= LARGEST_POWER and size < math.inf else ANYTHING


@rule("mm bmm dot mv matmul")
def matmul(node: Node, a: dict[str, Any], of: Of) -> Interval:
    left, right = node.all_input_nodes[0], node.all_input_nodes[-1]
    return _many(of(left).times(of(right)), value(left).shape[-1])


@rule("addmm baddbmm addmv addbmm")
def add_matmul(node: Node, a: dict[str, Any], of: Of) -> Interval:
    first, left, right = (v for v in a.values() if isinstance(v, Node))
    product = _many(of(left).times(of(right)), value(left).shape[-1] * max(1, value(left).shape[0]))
    return of(first).times(of(a["beta"])).plus(product.times(of(a["alpha"])))


@rule("scatter_add index_add scatter_reduce")
def accumulated(node: Node, a: dict[str, Any], of: Of) -> Interval:
    """Each element may receive all of the source, or the largest or smallest of it."""
    source = next(a[name] for name in ("src", "source", "values") if name in a)
    if a.get("reduce") in ("amax", "amin"):
        return of(a["self"]) | of(source)
    if a.get("reduce") not in (None, "sum"):
        return ANYTHING
    return of(a["self"]).plus(_many(of(source).times(of(a.get("alpha", 1))), _count(source)))


@rule("sigmoid softmax _softmax tanh sin cos erf")
def unit(node: Node, a: dict[str, Any], of: Of) -> Interval:
    return Interval(-1, 1) if math.isfinite(sum(map(abs, of(_first(a))))) else ANYTHING
