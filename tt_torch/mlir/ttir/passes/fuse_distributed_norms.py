"""Finds RMS norms of a dimension that an axis of the mesh splits, as `ttir.distributed_rms_norm`.

Tenstorrent's library computes them in one op for few rows, as when a language model decodes. All other forms stay
chains of primitives with an `all_reduce` of the means of the squares. So do norms whose weight is not known before the
inputs: to bring it into the form of the op in each call may cost more than the op saves.
"""

from __future__ import annotations

import math

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.mesh import mesh_of
from tt_torch.mlir.parts import even
from tt_torch.mlir.rules import Builder, RuleSet, dtype, producer, shape, single_use
from tt_torch.mlir.ttir.constness import is_constant
from tt_torch.mlir.ttir.passes import canonicalize
from tt_torch.mlir.ttir.passes import fuse_normalization as local
from tt_torch.mlir.ttir.passes.canonicalize import splat
from tt_torch.mlir.types import Op, Value
from tt_torch.wire.facts import TILE

RULES = RuleSet("fuse-distributed-norms")
LEAST_COLUMNS = 8  # of cores, which each chip has
MOST_TILES = 16  # of a row on one core: more would take longer than the chain of primitives, by the cost model


def fuse_distributed_norms(module: ir.Module) -> None:
    if mesh_of(module.operation) != (1, 1):
        (RULES + canonicalize.RULES).simplify(module)


def fits(x: Value) -> bool:
    """Whether the library's op takes the shape of `x`: at most 32 rows of whole tiles, which fit L1."""
    *outer, width = [1, *shape(x)]
    if not 0 < math.prod(outer) <= TILE or width % TILE or not width:
        return False
    return width // TILE // even(width // TILE, LEAST_COLUMNS) <= MOST_TILES


@RULES.rewrites("ttir.multiply")
def distributed_rms_norm(op: Op, b: Builder) -> Value | None:
    """x * rsqrt(mean over the chips of mean(x ** 2) + epsilon) * weight, over the last dimension."""
    for normed, weight in (op.operands, list(op.operands)[::-1]):
        product = producer(normed, "ttir.multiply") if single_use(normed) else None
        if product is None or shape(op.results[0]) != shape(normed) or not _is_weight(weight, normed):
            continue
        for x, second in (product.operands, list(product.operands)[::-1]):
            if shape(x) == shape(normed) and fits(x) and (found := _deviation(second, x)) is not None:
                axis, epsilon = found
                rows = b("ttir.reshape", x, shape=[1, 1, math.prod(shape(x)[:-1]), shape(x)[-1]])
                vector = b("ttir.reshape", weight, shape=shape(x)[-1:])
                norm = b("ttir.distributed_rms_norm", rows, vector, cluster_axis=axis, epsilon=epsilon)
                return b("ttir.reshape", norm, shape=shape(x))
    return None


def _is_weight(value: Value, x: Value) -> bool:
    """Whether `value` has one element for each column of `x`, and is known before the inputs."""
    is_vector = shape(value)[-1:] == shape(x)[-1:] and math.prod(shape(value)) == shape(x)[-1]
    return is_vector and is_constant(value)


def _deviation(value: Value, x: Value) -> tuple[int, float] | None:
    """The axis of the mesh and epsilon, if `value` is rsqrt(mean over the chips of mean(x ** 2) + epsilon), and nothing
    else reads a part of this."""
    last = len(shape(x)) - 1
    root = local.per_row(value, x, last, "ttir.rsqrt") if last >= 0 else None
    total = local.behind(root.operands[0], "ttir.add") if root is not None else None
    share = local.behind(total.operands[0], "ttir.divide") if total is not None else None
    exchange = local.behind(share.operands[0], "ttir.all_reduce") if share is not None else None
    average = local.behind(exchange.operands[0], "ttir.mean") if exchange is not None else None
    if root is None or total is None or share is None or exchange is None or average is None:
        return None
    axis, epsilon = int(ods.attr(exchange, "cluster_axis")), splat(total.operands[1])
    if epsilon is None or splat(share.operands[1]) != mesh_of(root)[axis] or mesh_of(root)[axis] == 1:
        return None
    if not local.is_square(average.operands[0], x) or local.same_axis(average, average.operands[0]) != last:
        return None
    only = all(single_use(each.results[0]) for each in (root, total, share, exchange, average))
    return (axis, epsilon) if only else None


@RULES.rewrites("ttir.typecast")
def norm_of_bfloat16(op: Op, b: Builder) -> Value | None:
    """A norm of bfloat16 that is computed in float32 and rounded to bfloat16. The op uses float32 by itself."""
    norm = local.behind(op.operands[0], "ttir.distributed_rms_norm")
    wide = local.behind(norm.operands[0], "ttir.typecast") if norm is not None else None
    if norm is None or wide is None or not (single_use(op.operands[0]) and single_use(norm.results[0])):
        return None
    (x,) = wide.operands
    if not isinstance(dtype(x), ir.BF16Type) or dtype(op.results[0]) != dtype(x):
        return None
    x = b("ttir.reshape", x, shape=shape(norm.results[0]))
    made = b.also_from(norm)("ttir.distributed_rms_norm", x, norm.operands[1], **ods.attrs_of(norm))
    return b("ttir.reshape", made, shape=shape(op.results[0]))


@RULES.rewrites("ttir.distributed_rms_norm")
def narrow_weight(op: Op, b: Builder) -> Value | None:
    """A weight of bfloat16 stays so: the op reads it as it is."""
    x, weight = op.operands
    wide = local.behind(weight, "ttir.typecast")
    if wide is None or not isinstance(dtype(wide.operands[0]), ir.BF16Type):
        return None
    vector = b("ttir.reshape", wide.operands[0], shape=shape(weight))
    return b("ttir.distributed_rms_norm", x, vector, **ods.attrs_of(op))
