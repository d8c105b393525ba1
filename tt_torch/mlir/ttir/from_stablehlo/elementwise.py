"""Element-wise ops. An op of StableHLO or CHLO that has the same name in TTIR needs nothing here. An op with another
name has a row, and an op with another form has a function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from torch_mlir import ir

from tt_torch.mlir.rules import Builder, Rule, dtype, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.of_pytorch import SIGN_OF_NAN_IS_ZERO, ZERO_IS_AN_ERROR
from tt_torch.mlir.ttir import dialect as ttir
from tt_torch.mlir.ttir.from_stablehlo.bits import FLOAT16, rounded
from tt_torch.mlir.ttir.from_stablehlo.creation import EXACT, full, splat_of
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Op, Value

# Ops that have another name in TTIR.
UNARY = {
    "stablehlo.cosine": "cos",
    "stablehlo.exponential": "exp",
    "stablehlo.exponential_minus_one": "expm1",
    "stablehlo.is_finite": "isfinite",
    "stablehlo.log_plus_one": "log1p",
    "stablehlo.logistic": "sigmoid",
    "stablehlo.sine": "sin",
}
BINARY = {
    "stablehlo.power": "pow",
    "stablehlo.shift_left": "logical_left_shift",
    "stablehlo.shift_right_logical": "logical_right_shift",
}
# Booleans are zeros and ones in bf16 here, so the element type distinguishes logical ops from bitwise ones.
LOGICAL = {"and": "and", "or": "or", "xor": "xor"}


def unary(target: str) -> Rule:
    return lambda op, b: b(f"ttir.{target}", op.operands[0])


def binary(target: str) -> Rule:
    def rule(op: Op, b: Builder) -> Value:
        lhs, rhs = _aligned(op, b)
        return b(f"ttir.{target}", lhs, rhs)

    return rule


def logical(target: str) -> Rule:
    def rule(op: Op, b: Builder) -> Value:
        lhs, rhs = _aligned(op, b)
        family = "logical" if isinstance(dtype(lhs), ir.BF16Type) else "bitwise"
        return b(f"ttir.{family}_{target}", lhs, rhs)

    return rule


def _aligned(op: Op, b: Builder) -> list[Value]:
    """The operands with equal rank. CHLO may map an operand of lower rank to given dimensions of the result."""
    given = attrs.ints(op, "broadcast_dimensions")
    rank = len(shape(op.results[0]))
    aligned = []
    for operand in op.operands:
        sizes = shape(operand)
        if given is not None and len(sizes) < rank and given != list(range(rank - len(sizes), rank)):
            spread = [1] * rank
            for size, dim in zip(sizes, given, strict=True):
                spread[dim] = size
            operand = b("ttir.reshape", operand, shape=spread)
        aligned.append(operand)
    return aligned


RULES.rows(logical, {f"stablehlo.{name}": target for name, target in LOGICAL.items()})
RULES.rows(logical, {f"chlo.broadcast_{name}": target for name, target in LOGICAL.items()})


@RULES.rewrites("stablehlo.not")
def invert(op: Op, b: Builder) -> Value:
    (x,) = op.operands
    return b("ttir.logical_not" if isinstance(dtype(x), ir.BF16Type) else "ttir.bitwise_not", x)


@RULES.rewrites("stablehlo.negate")
def negate(op: Op, b: Builder) -> Value:
    """TTNN negates only numbers with a sign. Others become the difference from zero, which wraps."""
    (x,) = op.operands
    return b("ttir.subtract", full(b, shape(x), dtype(x), 0), x) if str(dtype(x)) == "ui32" else b("ttir.neg", x)


@RULES.rewrites("chlo.square")
def square(op: Op, b: Builder) -> Value:
    return b("ttir.multiply", op.operands[0], op.operands[0])


@RULES.rewrites("stablehlo.compare", "chlo.broadcast_compare")
def compare(op: Op, b: Builder) -> Value:
    lhs, rhs = _aligned(op, b)
    return b(f"ttir.{attrs.direction(op).lower()}", lhs, rhs)


@RULES.rewrites("stablehlo.select", "chlo.broadcast_select")
def select(op: Op, b: Builder) -> Value:
    return b("ttir.where", *op.operands)


@RULES.rewrites("stablehlo.convert")
def convert(op: Op, b: Builder) -> Value:
    (x,), target = op.operands, dtype(op.results[0])
    if "tt.to_bool" in op.operation.attributes:  # see normalize: only zero is false
        return b("ttir.ne", x, full(b, shape(x), dtype(x), 0))
    number = splat_of(x) if "tt.to_half" in op.operation.attributes else None
    if number is not None:
        with np.errstate(over="ignore"):
            return full(b, shape(x), target, np.float32(number).astype(np.float16).item())
    x = x if dtype(x) == target else b("ttir.typecast", x, dtype=target)
    return rounded(b, x, FLOAT16, gradual=True) if "tt.to_half" in op.operation.attributes else x


@RULES.rewrites("stablehlo.clamp")
def clamp(op: Op, b: Builder) -> Value:
    low, x, high = op.operands
    least, most = splat_of(low), splat_of(high)
    kind = dtype(x)
    if least is None or most is None or (isinstance(kind, ir.IntegerType) and not _has_bounds(kind, least, most)):
        return b("ttir.minimum", b("ttir.maximum", x, low), high)
    return b("ttir.clamp_scalar", x, min=float(least), max=float(most))


def _has_bounds(kind: ir.IntegerType, least: float, most: float) -> bool:
    """Whether `clamp_scalar` takes integers of this type and these bounds. Its bounds are float32 attributes."""
    return not kind.is_unsigned and max(abs(least), abs(most)) <= EXACT


@RULES.rewrites("stablehlo.remainder", "chlo.broadcast_remainder")
def remainder(op: Op, b: Builder) -> Value:
    """The result has the sign of the dividend in StableHLO, but of the divisor in TTIR."""
    lhs, rhs = _aligned(op, b)
    if isinstance(dtype(lhs), ir.IntegerType):
        return _divided(op, b, rhs, lhs, partial(_remainder_of_integers, b, lhs))
    magnitude = b("ttir.remainder", b("ttir.abs", lhs), b("ttir.abs", rhs))
    signed = b("ttir.multiply", b("ttir.sign", lhs), magnitude)
    return _with_signed_zeros(b, signed, lhs)


@RULES.rewrites("stablehlo.divide", "chlo.broadcast_divide")
def divide(op: Op, b: Builder) -> Value:
    lhs, rhs = _aligned(op, b)
    quotient = partial(b, "ttir.divide", lhs)
    if not isinstance(kind := dtype(rhs), ir.IntegerType):
        return quotient(rhs)
    return _divided(op, b, rhs, _scalar(b, rhs, 2**kind.width - 1 if kind.is_unsigned else -1), quotient)


def _divided(op: Op, b: Builder, divisor: Value, of_zero: Value, divide: Callable[[Value], Value]) -> Value:
    """`divide` of a divisor of integers, and `of_zero` where the divisor is zero, for which StableHLO leaves the value
    open. These are XLA's values: all bits are set in the quotient, and the remainder is the dividend. JAX's `gcd`
    divides by zeros, and does not select these elements."""
    if ZERO_IS_AN_ERROR in op.operation.attributes or splat_of(divisor):
        return divide(divisor)
    zero = b("ttir.eq", divisor, _scalar(b, divisor, 0))
    return b("ttir.where", zero, of_zero, divide(b("ttir.where", zero, _scalar(b, divisor, 1), divisor)))


def _remainder_of_integers(b: Builder, lhs: Value, rhs: Value) -> Value:
    """TTIR's remainder is too large by the divisor if its sign differs from the sign of the dividend. No magnitudes are
    computed, because the lowest integer has none."""
    rest = b("ttir.remainder", lhs, rhs)
    if dtype(rest).is_unsigned:
        return rest
    zero = _scalar(b, rest, 0)
    other = b("ttir.ne", b("ttir.lt", rest, zero), b("ttir.lt", lhs, zero))
    other = b("ttir.logical_and", other, b("ttir.ne", rest, zero))
    return b("ttir.where", other, b("ttir.subtract", rest, rhs), rest)


def _with_signed_zeros(b: Builder, value: Value, x: Value) -> Value:
    """`value`, but its zeros get the signs of the elements of `x`. These elements are finite."""
    zero = _scalar(b, x, 0.0)
    return b("ttir.where", b("ttir.eq", value, zero), b("ttir.multiply", x, zero), value)


def _scalar(b: Builder, like: Value, value: float | int) -> Value:
    """A number that broadcasts to a tensor, in its type."""
    return full(b, [1] * len(shape(like)), dtype(like), value)


@RULES.rewrites("stablehlo.sign")
def sign(op: Op, b: Builder) -> Value:
    """In TTIR, as in PyTorch, the sign of NaN or of a zero is 0. In StableHLO, it is the operand: NaN, 0.0 or -0.0."""
    (x,) = op.operands
    signs = b("ttir.sign", x)
    if isinstance(dtype(x), ir.IntegerType) or SIGN_OF_NAN_IS_ZERO in op.operation.attributes:
        return signs
    return b("ttir.where", b("ttir.gt", b("ttir.abs", x), _scalar(b, x, 0.0)), signs, x)


@RULES.rewrites("stablehlo.round_nearest_even")
def round_nearest_even(op: Op, b: Builder) -> Value:
    """floor(x), plus 1 if the fraction is above 0.5, or if it is 0.5 and floor(x) is odd. A zero has the sign of x."""
    (x,) = op.operands
    scalar = partial(_scalar, b, x)
    low = b("ttir.floor", x)
    rest = b("ttir.subtract", x, low)
    half = b("ttir.multiply", low, scalar(0.5))
    odd = b("ttir.multiply", b("ttir.subtract", half, b("ttir.floor", half)), scalar(2.0))
    middle = b("ttir.where", b("ttir.eq", rest, scalar(0.5)), odd, full(b, shape(x), dtype(x), 0.0))
    step = b("ttir.where", b("ttir.gt", rest, scalar(0.5)), full(b, shape(x), dtype(x), 1.0), middle)
    return _with_signed_zeros(b, b("ttir.add", low, step), x)


@RULES.rewrites("stablehlo.round_nearest_afz")
def round_nearest_away(op: Op, b: Builder) -> Value:
    """Rounds the magnitude of x: floor, plus 1 if the fraction is at least 0.5. The result has the sign of x."""
    (x,) = op.operands
    size = b("ttir.abs", x)
    low = b("ttir.floor", size)
    up = b("ttir.ge", b("ttir.subtract", size, low), _scalar(b, x, 0.5))
    ones, none = (full(b, shape(x), dtype(x), v) for v in (1.0, 0.0))
    rounded = b("ttir.multiply", b("ttir.sign", x), b("ttir.add", low, b("ttir.where", up, ones, none)))
    return _with_signed_zeros(b, rounded, x)


@RULES.rewrites("stablehlo.optimization_barrier")
def optimization_barrier(op: Op, b: Builder) -> list[Value]:
    """The operands. The op only forbids reordering, and the device runs ops in order."""
    return list(op.operands)


@RULES.rewrites("stablehlo.shift_right_arithmetic")
def shift_right_arithmetic(op: Op, b: Builder) -> Value:
    """The highest bit of an unsigned number is a sign here, too. `normalize` prepares numbers of 16 bits."""
    x, bits = op.operands
    own, i32 = dtype(x), ir.IntegerType.get_signless(32)
    if str(own) == "ui32":
        x, bits = (b("ttir.bitcast_convert", v, dtype=i32) for v in (x, bits))
        return b("ttir.bitcast_convert", _shifted(b, x, bits), dtype=own)
    if str(own) == "ui8":
        x, bits = (b("ttir.typecast", v, dtype=i32) for v in (x, bits))
        x = b("ttir.subtract", b("ttir.bitwise_xor", x, _scalar(b, x, 0x80)), _scalar(b, x, 0x80))
        low = b("ttir.bitwise_and", _shifted(b, x, bits), _scalar(b, x, 0xFF))
        return b("ttir.typecast", low, dtype=own)
    return _shifted(b, x, bits)


def _shifted(b: Builder, x: Value, bits: Value) -> Value:
    """TTNN shifts zeros in, so a negative number is complemented before and after the shift."""
    negative = b("ttir.lt", x, _scalar(b, x, 0))
    shifted = b("ttir.bitwise_not", b("ttir.logical_right_shift", b("ttir.bitwise_not", x), bits))
    return b("ttir.where", negative, shifted, b("ttir.logical_right_shift", x, bits))


def take_the_rest() -> None:
    """Registers rules for the rows above, and for ops that have the same name in TTIR and no rule of their own. Binary
    ops with broadcasting have a prefix in CHLO: `chlo.broadcast_add`."""
    own = RULES.names
    of_one = {f"{dialect}.{name}": name for dialect in ("stablehlo", "chlo") for name in ttir.UNARY} | UNARY
    of_two = {f"stablehlo.{name}": name for name in ttir.BINARY} | BINARY
    of_two |= {name.replace("stablehlo.", "chlo.broadcast_"): target for name, target in of_two.items()}
    for family, ops in (unary, of_one), (binary, of_two):
        RULES.rows(family, {name: target for name, target in ops.items() if name not in own})
