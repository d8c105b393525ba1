"""Removes needless ops that torch-mlir leaves: identities, chains of reshapes, transposes and casts, broadcasts before
element-wise ops, and arithmetic on splats.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from torch_mlir import ir

from tt_torch.mlir import infer, ods
from tt_torch.mlir.rules import Builder, Rule, RuleSet, dtype, producer, shape, single_use
from tt_torch.mlir.ttir import dialect
from tt_torch.mlir.ttir.from_stablehlo.creation import as_element, full
from tt_torch.mlir.types import Op, Value

RULES = RuleSet("canonicalize")
REDUCTIONS = [f"ttir.{n}" for n in dialect.REDUCTIONS]
BROADCASTING = [f"ttir.{n}" for n in [*dialect.BINARY, *dialect.COMPARISONS, *dialect.LOGICAL, "where"]]


def splat(value: Value) -> float | None:
    """The value of a `ttir.full`, else None."""
    op = producer(value, "ttir.full")
    return None if op is None else op.attributes["fill_value"].value


def element(value: Value) -> float | None:
    """The value of a `ttir.full`, converted to its element type. The attribute has the number as it was written."""
    number = splat(value)
    return None if number is None else as_element(number, dtype(value))


@RULES.rewrites("ttir.reshape")
def reshape(op: Op, b: Builder) -> Value | None:
    (x,), target = op.operands, shape(op.results[0])
    if shape(x) == target:
        return x
    if (value := splat(x)) is not None:
        return full(b, target, dtype(x), value)
    inner = producer(x, "ttir.reshape")
    return None if inner is None else b("ttir.reshape", inner.operands[0], shape=target)


@RULES.rewrites("ttir.reshape")
def kept_dimensions(op: Op, b: Builder) -> Value | None:
    """If a reshape restores the reduced dimensions with size 1, the reduction keeps them instead."""
    reduction = producer(op.operands[0], *REDUCTIONS)
    if reduction is None or not single_use(op.operands[0]) or ods.attr(reduction, "keep_dim"):
        return None
    (x,), dims = reduction.operands, ods.attr(reduction, "dim_arg")
    if infer.reduced(shape(x), dims, True) != shape(op.results[0]):
        return None
    return b(reduction.name, x, dim_arg=dims, keep_dim=True)


@RULES.rewrites("ttir.permute")
def permute(op: Op, b: Builder) -> Value | None:
    (x,), permutation = op.operands, ods.attr(op, "permutation")
    if permutation == sorted(permutation):
        return x
    if (value := splat(x)) is not None:
        return full(b, shape(op.results[0]), dtype(x), value)
    if inner := producer(x, "ttir.permute"):
        first = ods.attr(inner, "permutation")
        return b("ttir.permute", inner.operands[0], permutation=[first[p] for p in permutation])
    moved = [p for p in permutation if shape(x)[p] != 1]
    if moved == sorted(moved):  # only dimensions of size 1 move
        return b("ttir.reshape", x, shape=shape(op.results[0]))
    return None


@RULES.rewrites("ttir.permute")
def permute_of_columns(op: Op, b: Builder) -> Value | None:
    """A permute leaves out dimensions of size 1 if one of them is among the last two, where it is padded to a tile. The
    permutes of an einsum have such dimensions. Without them, several permutes become one."""
    (x,), (result,), permutation = op.operands, op.results, ods.attr(op, "permutation")
    kept = [p for p in permutation if shape(x)[p] != 1]
    if 1 not in (*shape(x)[-2:], *shape(result)[-2:]) or len(kept) == len(permutation):
        return None
    small = b("ttir.reshape", x, shape=[size for size in shape(x) if size != 1])
    moved = b("ttir.permute", small, permutation=[sorted(kept).index(p) for p in kept])
    return b("ttir.reshape", moved, shape=shape(result))


@RULES.rewrites("ttir.broadcast")
def broadcast(op: Op, b: Builder) -> Value | None:
    (x,) = op.operands
    if (value := splat(x)) is not None:
        return full(b, shape(op.results[0]), dtype(x), value)
    return x if shape(x) == shape(op.results[0]) else None


@RULES.rewrites("ttir.slice_static", "ttir.pad")
def whole(op: Op, b: Builder) -> Value | None:
    return op.operands[0] if shape(op.operands[0]) == shape(op.results[0]) else None


@RULES.rewrites("ttir.concat")
def concat_of_one(op: Op, b: Builder) -> Value | None:
    return op.operands[0] if len(op.operands) == 1 else None


@RULES.rewrites("ttir.typecast")
def typecast(op: Op, b: Builder) -> Value | None:
    (x,), target = op.operands, dtype(op.results[0])
    if dtype(x) == target:
        return x
    value = element(x)
    if value is not None and isinstance(target, ir.IntegerType):
        value = as_element(value, target)
    return None if value is None else full(b, shape(x), target, value)


@RULES.rewrites(*BROADCASTING)
def implicit_broadcast(op: Op, b: Builder) -> Value | None:
    """Removes broadcasts before element-wise ops, which broadcast if one operand has the shape of the result."""
    for i, operand in enumerate(op.operands):
        others = [shape(v) for j, v in enumerate(op.operands) if j != i]
        small = _shape_without_broadcast(operand)
        # If a rule made an op and then did not match, that would count as a change, and the rules would never end.
        if small is None or infer.broadcast_shapes(small, *others) != shape(op.results[0]):
            continue
        operands = list(op.operands)
        inner, value = producer(operand, "ttir.broadcast"), splat(operand)
        if inner is not None:
            operands[i] = inner.operands[0]
        elif value is not None:
            operands[i] = full(b, small, dtype(operand), value)
        return b(op.operation.name, *operands, type=op.results[0].type)
    return None


def _shape_without_broadcast(operand: Value) -> list[int] | None:
    if inner := producer(operand, "ttir.broadcast"):
        return shape(inner.operands[0])
    return [1] if splat(operand) is not None and math.prod(shape(operand)) > 1 else None


# Each is the negation of the other one, also for NaN. Other comparisons have no opposite for NaN.
OPPOSITES = {"ttir.ne": "ttir.eq", "ttir.eq": "ttir.ne"}


@RULES.rewrites("ttir.logical_not")
def opposite(op: Op, b: Builder) -> Value | None:
    compared = producer(op.operands[0], *OPPOSITES)
    return None if compared is None else b(OPPOSITES[compared.name], *compared.operands, type=op.results[0].type)


FOLDS: dict[str, Callable[..., float]] = {
    "ttir.add": lambda a, c: a + c,
    "ttir.subtract": lambda a, c: a - c,
    "ttir.multiply": lambda a, c: a * c,
    "ttir.divide": lambda a, c: a / c,
    "ttir.maximum": max,
    "ttir.minimum": min,
    "ttir.pow": math.pow,
}
LARGEST = 3.3895313e38  # of bf16, within float32
UNARY_FOLDS: dict[str, Callable[..., float]] = {
    "ttir.sqrt": math.sqrt,
    "ttir.rsqrt": lambda a: 1 / math.sqrt(a),
    "ttir.neg": lambda a: -a,
    "ttir.reciprocal": lambda a: 1 / a,
}


def fold(compute: Callable[..., float]) -> Rule:
    """Arithmetic on splats of finite floats. Exceptional values, such as NaN in a maximum, are left to the device."""

    def rule(op: Op, b: Builder) -> Value | None:
        values = [element(v) for v in op.operands]
        if any(type(v) is not float or not math.isfinite(v) for v in values):
            return None
        try:
            value = compute(*values)
        except (ArithmeticError, ValueError):
            return None
        return full(b, shape(op.results[0]), dtype(op.results[0]), value) if abs(value) <= LARGEST else None

    return rule


RULES.rows(fold, FOLDS)
RULES.rows(fold, UNARY_FOLDS)
NEUTRAL = {"ttir.multiply": 1, "ttir.divide": 1, "ttir.subtract": 0, "ttir.pow": 1}


@RULES.rewrites(*NEUTRAL)
def neutral(op: Op, b: Builder) -> Value | None:
    """x * 1, x / 1, x - 0 and x ** 1 become x. x + 0 and x - -0.0 stay, because they turn -0.0 into 0.0."""
    x, value = op.operands
    if op.operation.name == "ttir.multiply" and splat(x) == 1:
        x, value = value, x
    number = splat(value)
    if x.type != op.results[0].type or number != NEUTRAL[op.operation.name]:
        return None
    return x if math.copysign(1, number) > 0 else None


@RULES.rewrites("ttir.maximum")
def relu(op: Op, b: Builder) -> Value | None:
    for x, bound in (op.operands, list(op.operands)[::-1]):
        number = splat(bound)
        if number is None or number != 0 or math.copysign(1, number) < 0:  # the maximum of -1 and -0.0 is -0.0
            continue
        if splat(x) is not None:
            continue
        size = shape(op.results[0])
        if shape(x) == size:
            return b("ttir.relu", x)
        if len(shape(x)) == len(size):  # the bound has the larger shape, after a broadcast of `x` was removed
            counts = [n // m if m else 1 for n, m in zip(size, shape(x), strict=True)]
            return b("ttir.broadcast", b("ttir.relu", x), broadcast_dimensions=counts)
    return None


@RULES.rewrites("ttir.divide")
def undo_multiply(op: Op, b: Builder) -> Value | None:
    """x * c / c of an average pool that is written as the sum of a window divided by its size. For other x, x * c may
    overflow, so these stay."""
    product, divisor = producer(op.operands[0], "ttir.multiply"), splat(op.operands[1])
    if product is None or not divisor or splat(product.operands[1]) != divisor:
        return None
    pool = producer(product.operands[0], "ttir.avg_pool2d")
    return product.operands[0] if pool is not None and shape(pool.results[0]) == shape(op.results[0]) else None
