"""Fuses attention: chains of a product, a softmax and a product, heads that share keys, and heads that are joined."""

from __future__ import annotations

import math

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, RuleSet, producer, shape
from tt_torch.mlir.ttir.constness import is_constant
from tt_torch.mlir.ttir.passes.canonicalize import splat
from tt_torch.mlir.ttir.passes.sink_data_movement import again, movement
from tt_torch.mlir.types import Op, Value

RULES = RuleSet("fuse-attention")
SPLIT = [0, 2, 1, 3]  # (B, S, H, D) <-> (B, H, S, D)


@RULES.rewrites("ttir.matmul")
def attention(op: Op, b: Builder) -> Value | None:
    """softmax(query @ key^T * scale + mask) @ value, on (B, H, S, D)."""
    weights = producer(op.operands[0], "ttir.softmax")
    if weights is None or len(shape(op.results[0])) != 4 or any(map(bool, ods.attrs_of(op).values())):
        return None
    scores, mask = _mask(weights.operands[0])
    scores, scale = _scale(scores)
    product = producer(scores, "ttir.matmul")
    if product is None or ods.attr(weights, "dimension") != 3 or not ods.attr(product, "transpose_b"):
        return None
    query, key = product.operands
    query, factor = _scale(query)
    value = op.operands[1]
    if ods.attr(product, "transpose_a") or not shape(query)[:2] == shape(key)[:2] == shape(value)[:2]:
        return None
    return b("ttir.scaled_dot_product_attention", query, key, value, mask, scale=scale * factor)


def _mask(scores: Value) -> tuple[Value, Value | None]:
    total = producer(scores, "ttir.add")
    if total is None or splat(total.operands[1]) is not None or shape(total.operands[0]) != shape(scores):
        return scores, None
    mask = total.operands[1]
    rank4 = len(shape(mask)) == 4 and shape(mask)[2:] == shape(scores)[2:]
    return (total.operands[0], mask) if rank4 else (scores, None)


def _scale(value: Value) -> tuple[Value, float]:
    """x and c of x * c or x / (1 / c), where c is a splat. For another value, c is 1."""
    op = producer(value, "ttir.multiply", "ttir.divide")
    factor = splat(op.operands[1]) if op is not None else None
    if op is None or not factor or shape(op.operands[0]) != shape(value):
        return value, 1.0
    return op.operands[0], factor if op.name == "ttir.multiply" else 1 / factor


@RULES.rewrites("ttir.scaled_dot_product_attention")
def scaled_query(op: Op, b: Builder) -> Value | None:
    """If a query is multiplied by a number before its heads are split, as in OPT, the op multiplies by it instead."""
    operands, attributes = ods.operands_of(op), ods.attrs_of(op)
    value, moves = operands["query"], list[Op]()
    while move := movement(value):
        moves.append(move)
        value = move.operands[0]
    source, factor = _scale(value)
    if source == value or not moves:
        return None
    for move in moves[::-1]:
        source = again(b, move, source, move.results[0])
    operands["query"], attributes["scale"] = source, attributes["scale"] * factor
    return b("ttir.scaled_dot_product_attention", *operands.values(), **attributes)


@RULES.rewrites("ttir.scaled_dot_product_attention")
def shared_heads(op: Op, b: Builder) -> Value | None:
    """Removes the repetition of each head of keys and values for a group of query heads. The op repeats by itself."""
    operands = ods.operands_of(op)
    found = [_before_repetition(operands[name]) for name in ("key", "value")]
    if found[0] is None or found[1] is None or found[0][1] != found[1][1]:
        return None
    for name, (source, heads) in zip(("key", "value"), (found[0], found[1]), strict=True):
        batch, _, length, size = shape(operands[name])
        operands[name] = b("ttir.reshape", source, shape=[batch, heads, length, size])
    return b("ttir.scaled_dot_product_attention", *operands.values(), **ods.attrs_of(op))


def _before_repetition(value: Value) -> tuple[Value, int] | None:
    """The elements of (B, H, S, D) before each of H / n heads was repeated n times in a row, and H / n.

    The repetition is a broadcast of a dimension of size 1. It is right behind the dimensions of batch and heads, which
    may have any shape.
    """
    move = producer(value, "ttir.reshape")
    spread = producer(move.operands[0] if move is not None else value, "ttir.broadcast")
    if spread is None:
        return None
    sizes, factors = shape(spread.operands[0]), ods.attr(spread, "broadcast_dimensions")
    repeated = [d for d, factor in enumerate(factors) if factor != 1]
    batch, heads = shape(value)[:2]
    if len(repeated) != 1 or sizes[repeated[0]] != 1 or heads % factors[repeated[0]]:
        return None
    own = heads // factors[repeated[0]]
    return (spread.operands[0], own) if math.prod(sizes[: repeated[0]]) == batch * own else None


@RULES.rewrites("ttir.reshape")
def concatenate_heads(op: Op, b: Builder) -> Value | None:
    """(B, H, S, D) permuted to (B, S, H, D), then flattened to (B, S, H * D)."""
    move = producer(op.operands[0], "ttir.permute")
    if move is None or len(shape(move.operands[0])) != 4 or ods.attr(move, "permutation") != SPLIT:
        return None
    batch, heads, length, size = shape(move.operands[0])
    if shape(op.results[0]) != [batch, length, heads * size] or is_constant(op.operands[0]):
        return None
    return b("ttir.concatenate_heads", move.operands[0])
