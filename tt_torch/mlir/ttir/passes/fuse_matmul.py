"""Fuses transposes, a bias and an activation into matrix products."""

from __future__ import annotations

import math

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, Rule, RuleSet, dtype, producer, shape, single_use
from tt_torch.mlir.types import Op, Value

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
            vector = b("ttir.reshape", vector, shape=sizes[-1:])
            return b.also_from(matmul)("ttir.linear", *matmul.operands, vector, **ods.attrs_of(matmul))
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
    """The gelu with tanh of bfloat16 as float32, rounded to bfloat16: as an activation, it is computed in float32."""
    gelu = producer(op.operands[0], "ttir.gelu_tanh")
    wide = producer(gelu.operands[0], "ttir.typecast") if gelu is not None else None
    if gelu is None or wide is None or not single_use(gelu.results[0]) or not single_use(wide.results[0]):
        return None
    (product,) = wide.operands
    kinds = [dtype(value) for value in (product, gelu.results[0], op.results[0])]
    if kinds != [ir.BF16Type.get(), ir.F32Type.get(), ir.BF16Type.get()]:
        return None
    return _activated(product, "gelu_tanh", b.also_from(gelu))
