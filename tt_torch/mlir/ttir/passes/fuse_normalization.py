"""Finds chains of primitives that are one op of TTNN: mean, softmax, RMS norm, layer norm."""

from __future__ import annotations

import math

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, RuleSet, dtype, producer, shape, single_use
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.ttir.passes.canonicalize import splat
from tt_torch.mlir.ttir.passes.sink_data_movement import MOVES, again
from tt_torch.mlir.types import Op, Value

RULES = RuleSet("fuse-normalization")


def behind(value: Value, name: str) -> Op | None:
    """The op called `name` that makes `value`, also behind reshapes; otherwise None."""
    while move := producer(value, "ttir.reshape"):
        value = move.operands[0]
    return producer(value, name)


def per_row(value: Value, x: Value, axis: int, name: str) -> Op | None:
    """The op called `name` that has one result per row of `x` along `axis`, if `value` repeats these along the rows.

    The check of shapes matters. If a square matrix is divided by the sums of its rows, column i may be divided by the
    sum of row i.
    """
    while spread := producer(value, "ttir.broadcast"):
        value = spread.operands[0]
    rows = [1 if d == axis else s for d, s in enumerate(shape(x))]
    return behind(value, name) if [1] * (len(rows) - len(shape(value))) + shape(value) == rows else None


@RULES.rewrites("ttir.divide", "ttir.multiply")
def mean(op: Op, b: Builder) -> Value | None:
    """sum / n, or sum * (1 / n), where n is the number of summed elements."""
    total, value = producer(op.operands[0], "ttir.sum"), splat(op.operands[1])
    if total is None or not value or isinstance(dtype(op.results[0]), ir.IntegerType):
        return None
    sizes = shape(total.operands[0])
    count = math.prod(sizes[d] for d in ods.attr(total, "dim_arg"))
    divisor = value if op.operation.name == "ttir.divide" else 1 / value
    if not math.isclose(divisor, count, rel_tol=1e-6) or shape(op.results[0]) != shape(total.results[0]):
        return None
    return b("ttir.mean", total.operands[0], **ods.attrs_of(total))


@RULES.rewrites("ttir.divide", "ttir.multiply")
def mean_of_reshaped(op: Op, b: Builder) -> Value | None:
    """The same if a reshape restores the reduced dimensions before the division."""
    move, divisor = producer(op.operands[0], "ttir.reshape"), op.operands[1]
    value = splat(divisor)
    if move is None or value is None or producer(move.operands[0], "ttir.sum") is None:
        return None
    if shape(move.results[0]) != shape(op.results[0]):
        return None
    one = full(b, [1], dtype(divisor), value)
    inner = b(op.operation.name, move.operands[0], one)
    return b("ttir.reshape", inner, shape=shape(op.results[0]))


def same_axis(reduced: Op, x: Value) -> int | None:
    """The only dimension of `x` that the reduction `reduced` (its max or sum) reduces."""
    dims = ods.attr(reduced, "dim_arg") if reduced is not None else []
    return dims[0] % len(shape(x)) if len(dims) == 1 and reduced.operands[0] == x else None


@RULES.rewrites("ttir.divide")
def softmax(op: Op, b: Builder) -> Value | None:
    """exp(x - max(x)) / sum(exp(x - max(x)))"""
    exponential = producer(op.operands[0], "ttir.exp")
    shifted = producer(exponential.operands[0], "ttir.subtract") if exponential is not None else None
    if exponential is None or shifted is None:
        return None
    x, e = shifted.operands[0], exponential.results[0]
    for axis in range(len(shape(x))):
        total, highest = (
            per_row(op.operands[1], e, axis, "ttir.sum"),
            per_row(shifted.operands[1], x, axis, "ttir.max"),
        )
        if total is not None and highest is not None and same_axis(total, e) == same_axis(highest, x) == axis:
            return b("ttir.softmax", x, dimension=axis)
    return None


@RULES.rewrites("ttir.multiply")
def rms_norm(op: Op, b: Builder) -> Value | None:
    """x * rsqrt(mean(x ** 2) + epsilon), over the last dimension."""
    for x, second in (op.operands, list(op.operands)[::-1]):
        deviation = per_row(second, x, len(shape(x)) - 1, "ttir.rsqrt") if shape(x) else None
        epsilon = _mean_square(deviation, x) if deviation is not None else None
        if epsilon is not None:
            return b("ttir.rms_norm", x, epsilon=epsilon)
    return None


def _mean_square(deviation: Op, x: Value) -> float | None:
    """epsilon of rsqrt(mean(x ** 2) + epsilon), over the last dimension; None for another expression."""
    total = behind(deviation.operands[0], "ttir.add")
    average = behind(total.operands[0], "ttir.mean") if total is not None else None
    if total is None or average is None or not is_square(average.operands[0], x):
        return None
    return splat(total.operands[1]) if same_axis(average, average.operands[0]) == len(shape(x)) - 1 else None


def is_square(value: Value, x: Value) -> bool:
    """Whether `value` is x * x or x ** 2."""
    product, power = producer(value, "ttir.multiply"), producer(value, "ttir.pow")
    if power is not None:
        return bool(power.operands[0] == x and splat(power.operands[1]) == 2 and shape(value) == shape(x))
    return product is not None and all(factor == x for factor in product.operands)


@RULES.rewrites("ttir.rms_norm")
def layer_norm(op: Op, b: Builder) -> Value | None:
    """The RMS norm of x - mean(x), over the last dimension."""
    operands = ods.operands_of(op)
    centred = producer(operands["input"], "ttir.subtract")
    if centred is None:
        return None
    x, last = centred.operands[0], len(shape(op.results[0])) - 1
    average = per_row(centred.operands[1], x, last, "ttir.mean")
    if average is None or same_axis(average, x) != last:
        return None
    return b("ttir.layer_norm", x, operands["weight"], None, **ods.attrs_of(op))


@RULES.rewrites("ttir.typecast")
def norm_in_float32(op: Op, b: Builder) -> Value | None:
    """An RMS norm of bfloat16 that is computed in float32 and rounded to bfloat16. The op uses float32 by itself.

    Elements may move between the cast and the norm. The weight keeps its data type, so that none of its digits is lost.
    """
    norm = producer(op.operands[0], "ttir.rms_norm")
    if norm is None or not single_use(norm.results[0]):
        return None
    moves: list[Op] = []
    while move := producer(moves[-1].operands[0] if moves else norm.operands[0], *MOVES):
        moves.append(move)
    wide = producer(moves[-1].operands[0] if moves else norm.operands[0], "ttir.typecast")
    if wide is None:
        return None
    (x,) = wide.operands
    if not isinstance(dtype(x), ir.BF16Type) or not isinstance(dtype(norm.results[0]), ir.F32Type):
        return None
    if dtype(op.results[0]) != dtype(x):
        return None
    for move in moves[::-1]:
        x = again(b, move, x, move.results[0])
    return b.also_from(norm)("ttir.rms_norm", x, ods.operand(norm, "weight"), **ods.attrs_of(norm))


@RULES.rewrites("ttir.multiply", "ttir.add")
def norm_affine(op: Op, b: Builder) -> Value | None:
    """A multiplication becomes the weight of a norm, and an addition becomes the bias of a layer norm."""
    field = "weight" if op.operation.name == "ttir.multiply" else "bias"
    for normed, vector in (op.operands, list(op.operands)[::-1]):
        norm = producer(normed, "ttir.layer_norm", "ttir.rms_norm")
        if norm is None or shape(vector)[-1:] != shape(normed)[-1:] or math.prod(shape(vector)) != shape(vector)[-1]:
            continue
        if shape(op.results[0]) != shape(normed):
            continue
        operands = ods.operands_of(norm)
        if field not in operands or operands.get("bias") is not None or operands[field] is not None:
            continue
        operands[field] = b("ttir.reshape", vector, shape=shape(vector)[-1:])
        return b(norm.name, *operands.values(), **ods.attrs_of(norm))
    return None
