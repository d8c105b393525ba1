"""Fuses transposes, a bias and an activation into matrix products. Splits a product if two slices read its columns."""

from __future__ import annotations

import math

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, Rule, RuleSet, dtype, producer, shape, single_use, users
from tt_torch.mlir.ttir.constness import is_constant
from tt_torch.mlir.types import Op, Value
from tt_torch.wire.facts import TILE

RULES = RuleSet("fuse-matmul")
MATMULS = ("ttir.matmul", "ttir.linear")


@RULES.rewrites(*MATMULS)
def transposed_operand(op: Op, b: Builder) -> Value | None:
    operands, attributes = ods.operands_of(op), ods.attrs_of(op)
    for name in ("a", "b"):
        move = producer(operands[name], "ttir.permute")
        if move is None:
            continue
        rank = len(shape(operands[name]))
        if ods.attr(move, "permutation") == [*range(rank - 2), rank - 1, rank - 2]:
            operands[name] = move.operands[0]
            attributes[f"transpose_{name}"] = not attributes[f"transpose_{name}"]
            return b(op.operation.name, *operands.values(), **attributes)
    return None


@RULES.rewrites("ttir.add")
def bias(op: Op, b: Builder) -> Value | None:
    """matmul + a vector along the columns, for floats only: the library has no product of integers."""
    if not isinstance(dtype(op.results[0]), ir.FloatType):
        return None
    for product, vector in (op.operands, list(op.operands)[::-1]):
        matmul = producer(product, "ttir.matmul")
        if matmul is None or not single_use(product) or shape(product) != shape(op.results[0]):
            continue
        sizes = shape(vector)
        if sizes and math.prod(sizes) == sizes[-1] == shape(product)[-1]:
            vector = b("ttir.reshape", vector, shape=sizes[-1:]) if is_constant(vector) else vector
            return b.also_from(matmul)("ttir.linear", *matmul.operands, vector, **ods.attrs_of(matmul))
    return None


@RULES.rewrites("ttir.add")
def residual(op: Op, b: Builder) -> Value | None:
    """matmul + a tensor of its shape, which TTNN's linear takes as a bias if it has more rows than a tile.

    If a bias has fewer rows, the library adds the first one to all rows.
    """
    if not isinstance(dtype(op.results[0]), ir.FloatType):
        return None
    for product, other in (op.operands, list(op.operands)[::-1]):
        matmul = producer(product, "ttir.matmul")
        if matmul is None or not single_use(product) or len(shape(matmul.operands[1])) != 2:
            continue
        if product.type == other.type == op.results[0].type and len(shape(other)) > 1 and shape(other)[-2] > TILE:
            return b.also_from(matmul)("ttir.linear", *matmul.operands, other, **ods.attrs_of(matmul))
    return None


# Activations that TTNN's matmul applies to its result.
ACTIVATIONS = {f"ttir.{name}": name for name in ("relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh")}


def activation(name: str) -> Rule:
    return lambda op, b: _activated(op.operands[0], name, b)


RULES.rows(activation, ACTIVATIONS)


def _activated(product: Value, name: str, b: Builder) -> Value | None:
    """A product with the activation `name`, if it has none and nothing else reads it."""
    before = producer(product, *MATMULS)
    if before is None or not single_use(product):
        return None
    operands, attributes = ods.operands_of(before), ods.attrs_of(before)
    if attributes.get("activation"):
        return None
    a, c, bias = operands["a"], operands["b"], operands.get("bias")
    return b.also_from(before)("ttir.linear", a, c, bias, **(attributes | {"activation": name}))


@RULES.rewrites("ttir.typecast")
def gelu_in_float32(op: Op, b: Builder) -> Value | None:
    """A gelu with tanh of a bfloat16 product, computed in float32 and rounded to bfloat16, becomes its activation. As
    an activation, it is computed in float32, too."""
    gelu = producer(op.operands[0], "ttir.gelu_tanh")
    wide = producer(gelu.operands[0], "ttir.typecast") if gelu is not None else None
    if gelu is None or wide is None or not single_use(gelu.results[0]) or not single_use(wide.results[0]):
        return None
    (product,) = wide.operands
    kinds = [dtype(value) for value in (product, gelu.results[0], op.results[0])]
    if kinds != [ir.BF16Type.get(), ir.F32Type.get(), ir.BF16Type.get()]:
        return None
    return _activated(product, "gelu_tanh", b.also_from(gelu))


@RULES.rewrites("ttir.slice_static")
def two_parts_of_a_product(op: Op, b: Builder) -> Value | None:
    """If only two slices of different columns read a product with constant weights, each becomes a product of its own.

    That saves the slices, and a part may take an activation, such as the gate of Phi-3 or of a GEGLU.
    """
    linear, cuts = producer(op.operands[0], *MATMULS), users(op.operands[0])
    if linear is None or len(cuts) != 2 or not all(map(_takes_columns, cuts)):
        return None
    other = next(cut for cut in cuts if cut != op.operation)
    (_, end), (begin, _) = sorted(map(_columns, cuts))
    if end > begin or not op.operation.is_before_in_block(other):
        return None
    fields = {"bias": None} | ods.operands_of(linear)
    given = [(value, rank) for value, rank in ((fields["b"], 2), (fields["bias"], 1)) if value is not None]
    if not all(len(shape(value)) == rank and is_constant(value) for value, rank in given):
        return None
    b = b.also_from(linear)
    other.results[0].replace_all_uses_with(_part(b, linear, *_columns(other)))
    return _part(b, linear, *_columns(op))


def _columns(cut: Op) -> tuple[int, int]:
    """The first column that a slice takes, and the column behind its last one."""
    return ods.attr(cut, "begins")[-1], ods.attr(cut, "ends")[-1]


def _takes_columns(cut: Op) -> bool:
    """Whether an op is a slice of neighbouring columns, with all rows."""
    if cut.name != "ttir.slice_static" or set(ods.attr(cut, "step")) != {1}:
        return False
    rows = shape(cut.operands[0])[:-1]
    return ods.attr(cut, "begins")[:-1] == [0] * len(rows) and ods.attr(cut, "ends")[:-1] == rows


def _part(b: Builder, linear: Op, begin: int, end: int) -> Value:
    """The columns `begin` to `end` of a product."""
    operands, attributes = ods.operands_of(linear), ods.attrs_of(linear)
    for name, dim in (("b", 0 if attributes["transpose_b"] else 1), ("bias", 0)):
        if (whole := operands.get(name)) is not None:
            begins, ends = [0] * len(shape(whole)), shape(whole)
            begins[dim], ends[dim] = begin, end
            operands[name] = b("ttir.slice_static", whole, begins=begins, ends=ends, step=[1] * len(ends))
    return b(linear.name, *operands.values(), **attributes)
