"""Rows of StableHLO programs at the edges of types: one per op, type and kind of edge. Inputs are arguments.

Ops with two operands get all pairs of a type's values: ends of ranges, zeros of both signs, infinities, NaN, numbers
between two numbers of a narrower type, shifts past the width, indices out of bounds.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

INTEGERS = {
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "ui8": torch.uint8, "ui16": torch.uint16, "ui32": torch.uint32, "ui64": torch.uint64,
}  # fmt: skip
FLOATS = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
TYPES = INTEGERS | FLOATS | {"i1": torch.bool}
BITS = {kind: 1 if kind == "i1" else int(re.sub(r"\D", "", kind)) for kind in TYPES}
COMPARISONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
MONOIDS = ("add", "multiply", "maximum", "minimum")
OF_LOGIC = (*MONOIDS, "and", "or", "xor")
COMMON = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power")
OF_INTEGERS = ("and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic")
OF_FLOATS = (
    "abs negate sign ceil floor round_nearest_afz round_nearest_even exponential exponential_minus_one log "
    "log_plus_one logistic sqrt rsqrt cbrt sine cosine tan tanh"
).split()
ORDINARY = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, -7.0, 0.1, 100.0)
# Infinities, NaN and numbers near the ends of float16: the middle above the largest number, and subnormal numbers.
UNUSUAL = (float("inf"), -float("inf"), float("nan"), 1e-6, 6e-8, -3e-8, 65519.0, 65520.0, -65535.0)


@dataclass(frozen=True)
class Row:
    """The body of a program takes `%a, %b, ...` of the arguments' types and makes `%0` of the type `result`."""

    name: str
    kinds: tuple[str, ...]
    inputs: tuple[torch.Tensor, ...]
    body: str
    result: str


def tensor(kind: str, values: Sequence[object]) -> torch.Tensor:
    made = torch.int64 if kind in ("ui16", "ui32", "ui64") else TYPES[kind]  # PyTorch makes few tensors of these
    return torch.tensor(values, dtype=made).to(TYPES[kind])


def named(kind: str, *sizes: int) -> str:
    return f"tensor<{''.join(f'{n}x' for n in sizes)}{kind}>"


def edges(kind: str) -> list[object]:
    """Values of a type. Integers of 64 bits are within 32 bits, because the device uses 32 bits for them."""
    if kind == "i1":
        return [False, True]
    if kind in FLOATS:
        largest = min(torch.finfo(FLOATS[kind]).max, torch.finfo(torch.float32).max)
        return [*ORDINARY, largest, -largest, *UNUSUAL]
    ends = torch.iinfo(INTEGERS[{"i64": "i32", "ui64": "ui32"}.get(kind, kind)])
    values = [0, 1, 2, 3, 5, 7, 31, 100, ends.max // 2, ends.max // 2 + 1, ends.max - 1, ends.max]
    return values + ([-1, -2, -3, -7, -100, ends.min, ends.min + 1] if ends.min else [])


def pairs(kind: str, op: str) -> tuple[torch.Tensor, torch.Tensor]:
    """All pairs of values, except those for which the specification leaves the result open."""
    both = itertools.product(edges(kind), edges(kind))
    if kind in INTEGERS and op in ("divide", "remainder"):
        both = ((x, y) for x, y in both if y and not (y == -1 and x == min(edges(kind))))
    if kind in FLOATS and op == "remainder":  # a large quotient, computed in float32, leaves no remainder
        both = ((x, y) for x, y in both if abs(x) < (1e3 if kind == "f64" else 1e30))
    left, right = zip(*both, strict=True)
    return tensor(kind, left), tensor(kind, right)


def elementwise(kind: str) -> Iterator[Row]:
    binary = COMMON + OF_INTEGERS if kind in INTEGERS else (*COMMON, "atan2")
    for op in OF_LOGIC if kind == "i1" else binary:
        x, y = pairs(kind, op)
        own = named(kind, len(x))
        yield Row(op, (kind, kind), (x, y), f"%0 = stablehlo.{op} %a, %b : {own}", own)
    x, y = pairs(kind, "compare")
    own, truth = named(kind, len(x)), named("i1", len(x))
    for direction in COMPARISONS:
        body = f"%0 = stablehlo.compare {direction}, %a, %b : ({own}, {own}) -> {truth}"
        yield Row(f"compare {direction}", (kind, kind), (x, y), body, truth)
    signed = ("abs", "sign") if kind in INTEGERS and kind[0] == "i" else ()
    unary = OF_FLOATS if kind in FLOATS else ("not", "popcnt", "count_leading_zeros", "negate", *signed)
    x = tensor(kind, edges(kind))
    own = named(kind, len(x))
    for op in ("not",) if kind == "i1" else unary:
        angles = torch.where(x.abs() > 1e4, 1.0, x).to(x.dtype) if op in ("sine", "cosine", "tan") else x
        yield Row(op, (kind,), (angles,), f"%0 = stablehlo.{op} %a : {own}", own)


def conversions(kind: str) -> Iterator[Row]:
    for target in TYPES:
        values = edges(kind)
        if kind in FLOATS and target in INTEGERS:  # their whole parts fit into the integers
            values = [v for v in (0.0, -0.0, 1.5, 2.5, 3.99, 100.7, -1.5, -100.7) if v >= 0 or target[0] == "i"]
        x = tensor(kind, values)
        own, result = named(kind, len(x)), named(target, len(x))
        yield Row(f"convert to {target}", (kind,), (x,), f"%0 = stablehlo.convert %a : ({own}) -> {result}", result)
        if target in ("f16", "bf16") and kind in FLOATS:
            body = f"%1 = stablehlo.convert %a : ({own}) -> {result}\n%0 = stablehlo.convert %1 : ({result}) -> {own}"
            yield Row(f"convert to {target} and back", (kind,), (x,), body, own)
        if min(BITS[kind], BITS[target]) > 1:
            yield bitcast(kind, target)
    if kind in FLOATS:
        for form in ("e5m2", "e5m10", "e8m7", "e4m3", "e3m2"):
            own = named(kind, len(x := tensor(kind, edges(kind))))
            body = f"%0 = stablehlo.reduce_precision %a, format = {form} : {own}"
            yield Row(f"reduce_precision {form}", (kind,), (x,), body, own)


def bitcast(kind: str, target: str) -> Row:
    x, parts = tensor(kind, [v for v in edges(kind) if v == v]), BITS[target] // BITS[kind]
    if parts > 1:
        x = x[: len(x) // parts * parts].reshape(-1, parts)
    sizes = [len(x), *([BITS[kind] // BITS[target]] if BITS[kind] > BITS[target] else [])]
    own, result = named(kind, *x.shape), named(target, *sizes)
    body = f"%0 = stablehlo.bitcast_convert %a : ({own}) -> {result}"
    return Row(f"bitcast to {target}", (kind,), (x,), body, result)


def combining(op: str, kind: str, name: str = "p") -> str:
    one = named(kind)
    return (
        f"({{\n^bb0(%x: {one}, %y: {one}):\n %{name} = stablehlo.{op} %x, %y : {one}\n"
        f" stablehlo.return %{name} : {one}\n}})"
    )


def reductions(kind: str) -> Iterator[Row]:
    """Reductions with an initial value that is an argument or a constant, over no elements, and over windows."""
    ops = OF_LOGIC if kind in (*INTEGERS, "i1") else MONOIDS
    x = tensor(kind, [0.5, -2.0, -0.0, 3.0, 1.0] if kind in FLOATS else edges(kind))
    x = tensor(kind, [1, 2, 3, 5]) if BITS[kind] == 64 else x
    own, one, three = named(kind, len(x)), named(kind), tensor(kind, [1 if kind == "i1" else 3])[0]
    number = {"i1": "true"}.get(kind, "3.0" if kind in FLOATS else "3")
    constant = f"%i = stablehlo.constant dense<{number}> : {one}\n"
    for op in ops:
        call = f"applies stablehlo.{op} across dimensions = [0] : ({own}, {one}) -> {one}"
        yield Row(f"reduce {op}", (kind, kind), (x, three), f"%0 = stablehlo.reduce(%a init: %b) {call}", one)
        body = f"{constant}%0 = stablehlo.reduce(%a init: %i) {call}"
        yield Row(f"reduce {op} of a constant", (kind,), (x,), body, one)
        nothing, empty = torch.zeros(0, 2).to(TYPES[kind]), named(kind, 0, 2)
        call = call.replace(own, empty).replace(f"-> {one}", f"-> {named(kind, 2)}")
        body = f"%0 = stablehlo.reduce(%a init: %b) {call}"
        yield Row(f"reduce {op} of nothing", (kind, kind), (nothing, three), body, named(kind, 2))
        windows = "window_dimensions = array<i64: 3>, window_dilations = array<i64: 2>, base_dilations = array<i64: 2>"
        pads = "padding = dense<[[2, -1]]> : tensor<1x2xi64>"
        result = named(kind, 2 * len(x) - 4)
        body = f'%0 = "stablehlo.reduce_window"(%a, %b) {combining(op, kind)} {{{windows}, {pads}}}'
        yield Row(f"reduce_window {op}", (kind, kind), (x, three), f"{body} : ({own}, {one}) -> {result}", result)


def arrangements(kind: str) -> Iterator[Row]:
    """Padding by an argument, clamps, sorts, and writes with indices out of bounds."""
    x = tensor(kind, [v for v in edges(kind) if v == v])
    last = x[-1]
    own, one, wide = named(kind, len(x)), named(kind), named(kind, 2 * len(x))
    pad = f"low = [2], high = [-1], interior = [1] : ({own}, {one}) -> {wide}"
    yield Row("pad", (kind, kind), (x, last), f"%0 = stablehlo.pad %a, %b, {pad}", wide)
    low, high = tensor(kind, [edges(kind)[1], edges(kind)[1]])
    body = f"%0 = stablehlo.clamp %b, %a, %c : ({one}, {own}, {one}) -> {own}"
    yield Row("clamp", (kind, kind, kind), (x, low, high), body, own)
    for direction in ("LT", "GT") if kind != "i1" else ():
        order = f"%p = stablehlo.compare {direction}, %x, %y : ({one}, {one}) -> tensor<i1>"
        region = f"({{\n^bb0(%x: {one}, %y: {one}):\n {order}\n stablehlo.return %p : tensor<i1>\n}})"
        body = f'%0 = "stablehlo.sort"(%a) {region} {{dimension = 0 : i64, is_stable = true}} : ({own}) -> {own}'
        yield Row(f"sort {direction}", (kind,), (x,), body, own)
    places = torch.tensor([[0], [1], [99], [-1]], dtype=torch.int32)
    numbers = "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"
    source = tensor(kind, [v for v in edges(kind) if v == v][-4:] if kind != "i1" else [True, False, True, True])
    for op in (*MONOIDS, *(OF_LOGIC[4:6] if kind == "i1" else ())):
        types = f"({own}, tensor<4x1xi32>, {named(kind, 4)}) -> {own}"
        body = f'%0 = "stablehlo.scatter"(%a, %b, %c) {combining(op, kind)} {{scatter_dimension_numbers = {numbers}}}'
        yield Row(f"scatter {op}", (kind, "i32", kind), (x, places, source), f"{body} : {types}", own)


def convolutions(kind: str) -> Iterator[Row]:
    """The sums of products leave the type's range. The rows have groups, dilations, uneven padding and a wider type."""
    x = tensor(kind, edges(kind))
    images, filters = torch.stack([x, x.roll(1), x.roll(2), x.roll(3)]).view(2, 2, len(x)), x[:12].view(4, 1, 3)
    own = f"({named(kind, *images.shape)}, {named(kind, *filters.shape)})"
    window = "window = {stride = [2], pad = [[1, -2]], lhs_dilate = [2], rhs_dilate = [3]}"
    form = f"dim_numbers = [b, f, 0]x[o, i, 0]->[b, 0, f], {window}"
    size = (2 * len(x) - 2 - 7) // 2 + 1
    for target in (kind, "i32") if BITS[kind] in (8, 16) else (kind,):
        result = named(target, 2, size, 4)
        counts = "batch_group_count = 1 : i64, feature_group_count = 2 : i64"
        body = f"%0 = stablehlo.convolution(%a, %b) {form} {{{counts}}} : {own} -> {result}"
        yield Row(f"convolution to {target}", (kind, kind), (images, filters), body, result)


def literal(value: object) -> str:
    return f"{value:.17e}" if isinstance(value, float) else str(value).lower()


def constants(kind: str) -> Iterator[Row]:
    values = [v for v in edges(kind) if abs(v) < float("inf")]
    own, few, text = named(kind, len(values)), named(kind, 5), ", ".join(literal(v) for v in values)
    yield Row("constant", (), (), f"%0 = stablehlo.constant dense<[{text}]> : {own}", own)
    if kind != "i1":
        yield Row("iota", (), (), f"%0 = stablehlo.iota dim = 0 : {few}", few)


def folded(kind: str) -> Iterator[Row]:
    """Values that are known at compile time. Each op rounds to its type."""
    own = named(kind, 3)
    number, low, high = ("true", "false", "true") if kind == "i1" else ("0.1", "-0.7", "0.3")
    if kind in INTEGERS:
        number, low, high = str(edges(kind)[-1] if BITS[kind] < 32 else 2**24 + 1), "2", "5"
    one = f"%1 = stablehlo.constant dense<{number}> : {own}\n"
    for through in ("f32", "bf16", "f16"):
        between = named(through, 3)
        there = f"%2 = stablehlo.convert %1 : ({own}) -> {between}\n"
        end = kind if kind in FLOATS else "f32"
        body = f"{one}{there}%0 = stablehlo.convert %2 : ({between}) -> {named(end, 3)}"
        yield Row(f"constant in {through}", (), (), body, named(end, 3))
    if kind in ("f32", "bf16"):
        parts = [f"%{i} = stablehlo.constant dense<{n}> : {own}\n" for i, n in enumerate(("1.0", "1.0e-9", "-1.0"), 2)]
        body = f"{''.join(parts)}%5 = stablehlo.add %2, %3 : {own}\n%0 = stablehlo.add %5, %4 : {own}"
        yield Row("constant sum", (), (), body, own)
    scalar, x = named(kind), tensor(kind, [v for v in edges(kind) if v == v])
    bounds = f"%1 = stablehlo.constant dense<{low}> : {scalar}\n%2 = stablehlo.constant dense<{high}> : {scalar}\n"
    own = named(kind, len(x))
    body = f"{bounds}%0 = stablehlo.clamp %1, %a, %2 : ({scalar}, {own}, {scalar}) -> {own}"
    yield Row("clamp between constants", (kind,), (x,), body, own)


def rows(kind: str) -> list[Row]:
    families = (elementwise, conversions, reductions, arrangements, constants, folded)
    of_integers = (convolutions,) if kind in INTEGERS else ()
    return [row for family in (*families, *of_integers) for row in family(kind)]
