"""Ops on the bits of numbers: bitcasts between widths, counts of bits, and floats with fewer bits.

The device has types of 32 bits. `normalize` notes the types that the program has: the operand's and the result's.
"""

from __future__ import annotations

from functools import reduce

from torch_mlir import ir

from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.dialect import IN_FLOAT32
from tt_torch.mlir.ttir.from_stablehlo.arranging import part
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Op, Value

WIDTHS = {"f32": 32, "i32": 32, "ui32": 32, "f16": 16, "bf16": 16, "i16": 16, "ui16": 16, "i8": 8, "ui8": 8}
FLOAT32 = (8, 23)  # bits of the exponent and of the mantissa
FLOAT16 = (5, 10)
LARGEST = 3.4028234663852886e38  # of float32


class Words:
    """Arithmetic on 32-bit integers, with numbers as second operands."""

    def __init__(self, b: Builder) -> None:
        self.b, self.i32, self.f32 = b, ir.IntegerType.get_signless(32), ir.F32Type.get()

    def like(self, x: Value, number: float) -> Value:
        return full(self.b, [1] * len(shape(x)), dtype(x), number)

    def __call__(self, name: str, x: Value, y: Value | float) -> Value:
        return self.b(f"ttir.{name}", x, y if isinstance(y, ir.Value) else self.like(x, y))

    def in_float32(self, name: str, x: Value, y: float) -> Value:
        """An op whose result depends on the roundings of float32, whatever the program computes in."""
        made = self(name, x, y)
        made.owner.attributes[IN_FLOAT32] = ir.UnitAttr.get()
        return made

    def chosen(self, condition: Value, x: Value, y: Value | float) -> Value:
        return self.b("ttir.where", condition, x, y if isinstance(y, ir.Value) else full(self.b, shape(x), dtype(x), y))

    def left(self, x: Value, count: int) -> Value:
        return self("logical_left_shift", x, count) if count else x

    def right(self, x: Value, count: int) -> Value:
        return self("logical_right_shift", x, count) if count else x

    def low(self, x: Value, count: int) -> Value:
        return self("bitwise_and", x, (1 << count) - 1) if count < 32 else x

    def signed(self, x: Value, count: int) -> Value:
        """The lowest bits as a number with a sign."""
        sign = 1 << (count - 1)
        return self("subtract", self("bitwise_xor", self.low(x, count), sign), sign)

    def cast(self, x: Value, target: ir.Type) -> Value:
        return x if dtype(x) == target else self.b("ttir.typecast", x, dtype=target)

    def same_bits(self, x: Value, target: ir.Type) -> Value:
        return x if dtype(x) == target else self.b("ttir.bitcast_convert", x, dtype=target)


def own_types(op: Op) -> tuple[str, str]:
    """The types of operand and result in the program."""
    source, target = op.operation.attributes["tt.types"]
    return str(source.value), str(target.value)


# --- floats of fewer bits ------------------------------------------------------------------------


def rounded(b: Builder, x: Value, kind: tuple[int, int], gradual: bool) -> Value:
    """Rounds float32 numbers to a float type of fewer bits, with ties to even. Numbers beyond its range are infinite.

    `kind` has the bits of the exponent and of the mantissa. Numbers below the type's smallest normal number become
    subnormal ones if `gradual`, otherwise zero.
    """
    w, (exponent, mantissa) = Words(b), kind
    y, bias, drop = x, (1 << (exponent - 1)) - 1, FLOAT32[1] - mantissa
    if drop > 0:
        bits = w.same_bits(x, w.i32)
        odd = w.low(w.right(bits, drop), 1)
        bits = w("bitwise_and", w("add", w("add", bits, (1 << (drop - 1)) - 1), odd), -(1 << drop))
        y = w.chosen(w("eq", x, x), w.same_bits(bits, w.f32), x)  # NaN stays NaN
    if exponent < FLOAT32[0]:
        y = w.chosen(w("ge", b("ttir.abs", y), 2.0 ** (bias + 1)), w("multiply", y, LARGEST), y)
        small = w("lt", b("ttir.abs", x if gradual else y), 2.0 ** (1 - bias))
        zero = w("multiply", x, 0.0)  # with the sign of x
        if gradual:  # the sum has no bits below those of the smallest subnormal number
            step = 1.5 * 2.0 ** (FLOAT32[1] - mantissa + 1 - bias)
            near = w.in_float32("subtract", w.in_float32("add", x, step), step)
            zero = w.chosen(w("eq", near, 0.0), zero, near)
        y = w.chosen(small, zero, y)
    return y


@RULES.rewrites("stablehlo.reduce_precision")
def reduce_precision(op: Op, b: Builder) -> Value:
    """Subnormal numbers stay if the exponent keeps all bits of the operand's type. Otherwise they become zeros."""
    (x,), w = op.operands, Words(b)
    exponent, mantissa = attrs.integer(op, "exponent_bits"), attrs.integer(op, "mantissa_bits")
    own = FLOAT16[0] if own_types(op)[0] == "f16" else FLOAT32[0]
    rest = rounded(b, w.cast(x, w.f32), (min(exponent, own), mantissa), gradual=exponent >= own)
    return w.cast(rest, dtype(x))


# --- bitcasts ------------------------------------------------------------------------------------


@RULES.rewrites("stablehlo.bitcast_convert")
def bitcast_convert(op: Op, b: Builder) -> Value | None:
    """The same bits in another type. If the widths differ, a last dimension has the parts, the lowest first."""
    (x,), (source, target), w = op.operands, own_types(op), Words(b)
    if source == target:
        return x
    if source not in WIDTHS or target not in WIDTHS:
        return None
    if WIDTHS[source] == WIDTHS[target] == 32:
        return w.same_bits(x, dtype(op.results[0]))
    bits, own, new = _bits_of(w, x, source), WIDTHS[source], WIDTHS[target]
    if own > new:
        parts = [w.low(w.right(bits, i * new), new) for i in range(own // new)]
        bits = b("ttir.concat", [b("ttir.reshape", p, shape=[*shape(x), 1]) for p in parts], dim=len(shape(x)))
    elif own < new:
        last = len(shape(x)) - 1
        parts = [w.left(part(b, bits, last, i, i + 1), i * own) for i in range(new // own)]
        bits = b("ttir.reshape", reduce(lambda p, q: w("bitwise_or", p, q), parts), shape=shape(op.results[0]))
    return _with_bits(w, bits, target, dtype(op.results[0]))


def _bits_of(w: Words, x: Value, kind: str) -> Value:
    """The bits of each element as an int32 without a sign."""
    if kind == "f16":
        return _half_bits(w, x)
    if kind == "bf16":
        return w.right(w.same_bits(w.cast(x, w.f32), w.i32), 16)
    if kind in ("f32", "ui32"):
        return w.same_bits(x, w.i32)
    return w.low(w.cast(x, w.i32), WIDTHS[kind])


def _with_bits(w: Words, bits: Value, kind: str, target: ir.Type) -> Value:
    """Elements of a type from their bits; `target` is the device's type for it."""
    if kind == "f16":
        return _half_of(w, bits)
    if kind == "bf16":
        return w.cast(w.same_bits(w.left(bits, 16), w.f32), target)
    if kind in ("i8", "i16"):
        return w.signed(bits, WIDTHS[kind])
    return w.same_bits(bits, target) if kind in ("f32", "ui32") else w.cast(bits, target)


HALF = 112 << 10  # how much larger a number's exponent is in float32 than in float16


def _half_bits(w: Words, x: Value) -> Value:
    """The float16 bits of float32 numbers that float16 can represent."""
    wide, size = w.same_bits(x, w.i32), w.b("ttir.abs", x)
    sign = w("bitwise_and", w.right(wide, 16), 1 << 15)
    normal = w("subtract", w.low(w.right(wide, 13), 18), HALF)
    small = w("lt", size, 2.0**-14)
    tiny = w.cast(w("multiply", w.chosen(small, size, 0.0), 2.0**24), w.i32)
    bits = w.chosen(w("ge", size, 2.0**16), full(w.b, shape(x), w.i32, 31 << 10), w.chosen(small, tiny, normal))
    return w("bitwise_or", w.chosen(w("ne", x, x), full(w.b, shape(x), w.i32, 63 << 9), bits), sign)


def _half_of(w: Words, bits: Value) -> Value:
    """The numbers that float16 has for these bits, as float32."""
    sign, size = w.left(w.right(bits, 15), 31), w.low(bits, 15)
    special = w("ge", size, 31 << 10)
    wide = w.left(w("add", size, w.chosen(special, full(w.b, shape(bits), w.i32, 2 * HALF), HALF)), 13)
    tiny = w.same_bits(w("multiply", w.cast(size, w.f32), 2.0**-24), w.i32)
    number = w.chosen(w("lt", size, 1 << 10), tiny, wide)
    return w.same_bits(w("bitwise_or", number, sign), w.f32)


# --- counts of bits ------------------------------------------------------------------------------


@RULES.rewrites("stablehlo.popcnt")
def popcnt(op: Op, b: Builder) -> Value:
    (x,), w = op.operands, Words(b)
    kind = own_types(op)[0]
    count = _ones(w, _bits_of(w, x, "ui32" if kind == "ui64" else "i32" if kind == "i64" else kind))
    if kind == "i64":  # all bits of the upper word are equal to the sign
        count = w("add", count, w.chosen(w("lt", x, 0), full(b, shape(x), w.i32, 32), 0))
    return w.cast(count, dtype(x))


@RULES.rewrites("stablehlo.count_leading_zeros")
def count_leading_zeros(op: Op, b: Builder) -> Value:
    """All bits below the highest set bit are set first. The bits that are still zero are the leading zeros."""
    (x,), w = op.operands, Words(b)
    kind = own_types(op)[0]
    bits = _bits_of(w, x, "ui32" if kind == "ui64" else "i32" if kind == "i64" else kind)
    for step in (1, 2, 4, 8, 16):
        bits = w("bitwise_or", bits, w.right(bits, step))
    zeros = w("subtract", w.like(bits, WIDTHS.get(kind, 64)), _ones(w, bits))
    if kind == "i64":
        zeros = w.chosen(w("lt", x, 0), full(b, shape(x), w.i32, 0), zeros)
    return w.cast(zeros, dtype(x))


def _ones(w: Words, x: Value) -> Value:
    """How many bits are ones. They are counted in groups of 2, 4 and 8 bits. A product then adds the counts of the
    bytes in its highest byte."""
    pairs = w("subtract", x, w("bitwise_and", w.right(x, 1), 0x55555555))
    fours = w("add", w("bitwise_and", pairs, 0x33333333), w("bitwise_and", w.right(pairs, 2), 0x33333333))
    bytes_ = w("bitwise_and", w("add", fours, w.right(fours, 4)), 0x0F0F0F0F)
    return w.right(w("multiply", bytes_, 0x01010101), 24)
