"""Reshapes, transposes, slices and similar ops."""

from __future__ import annotations

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.arranging import crop, padded, spread
from tt_torch.mlir.ttir.from_stablehlo.creation import full, splat_of
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Op, Value


@RULES.rewrites("stablehlo.reshape", "stablehlo.dynamic_reshape", "tensor.cast")
def reshape(op: Op, b: Builder) -> Value:
    return b("ttir.reshape", op.operands[0], shape=shape(op.results[0]))


@RULES.rewrites("stablehlo.transpose")
def transpose(op: Op, b: Builder) -> Value:
    return b("ttir.permute", op.operands[0], permutation=attrs.ints(op, "permutation"))


@RULES.rewrites("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")
def broadcast_in_dim(op: Op, b: Builder) -> Value:
    """The shape comes from the result type, even if an operand gives it, too.

    Orders the dimensions of the operand, reshapes it to the rank of the result, and repeats dimensions of size 1."""
    x, target = op.operands[0], shape(op.results[0])
    value = splat_of(x)
    if value is not None:
        return full(b, target, dtype(x), value)
    dims = attrs.ints(op, "broadcast_dimensions")
    order = sorted(range(len(dims)), key=lambda i: dims[i])
    if order != list(range(len(dims))):
        x = b("ttir.permute", x, permutation=order)
    spread = [1] * len(target)
    for i in order:
        spread[dims[i]] = shape(op.operands[0])[i]
    x = b("ttir.reshape", x, shape=spread)
    return b(
        "ttir.broadcast", x, broadcast_dimensions=[t // s if s else 1 for t, s in zip(target, spread, strict=True)]
    )


@RULES.rewrites("stablehlo.slice")
def slice_(op: Op, b: Builder) -> Value:
    begins, ends, step = (attrs.ints(op, n) for n in ("start_indices", "limit_indices", "strides"))
    return b("ttir.slice_static", op.operands[0], begins=begins, ends=ends, step=step)


@RULES.rewrites("stablehlo.concatenate")
def concatenate(op: Op, b: Builder) -> Value:
    parts, dim, longest = list(op.operands), attrs.integer(op, "dimension"), ods.LONGEST_VARIADIC
    while len(parts) > longest:
        groups = [parts[i : i + longest] for i in range(0, len(parts), longest)]
        parts = [b("ttir.concat", group, dim=dim) for group in groups]
    return b("ttir.concat", parts, dim=dim)


@RULES.rewrites("stablehlo.pad")
def pad(op: Op, b: Builder) -> Value:
    """Pads between the elements first, then at the ends. Negative padding removes elements."""
    x, value = op.operands
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, interior = (attrs.ints(op, name) or [] for name in names)
    pairs = [p for both in zip(low, high, strict=True) for p in both]
    x = crop(b, spread(b, x, [i + 1 for i in interior], value), pairs)
    if max(pairs, default=0) <= 0:
        return x
    return padded(b, x, [max(0, p) for p in pairs], value)
