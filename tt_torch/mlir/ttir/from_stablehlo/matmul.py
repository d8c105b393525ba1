"""Converts dot_general and dot to ttir.matmul. In each operand, the batch dimensions come first. One dimension of rows
or columns and one contracted dimension follow."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Op, Value


@RULES.rewrites("stablehlo.dot_general")
def dot_general(op: Op, b: Builder) -> Value:
    lhs, rhs = widened(op, b)
    dims = attrs.dot(op)
    batch, contracted = list(dims.lhs_batching_dimensions), list(dims.lhs_contracting_dimensions)
    batch_b, contracted_b = list(dims.rhs_batching_dimensions), list(dims.rhs_contracting_dimensions)
    free, free_b = _free(lhs, batch + contracted), _free(rhs, batch_b + contracted_b)
    # (batch..., rows, inner) @ (batch..., inner, columns)
    a = _arrange(b, lhs, batch, free, contracted)
    c = _arrange(b, rhs, batch_b, contracted_b, free_b)
    product = b("ttir.matmul", a, c)
    return b("ttir.reshape", product, shape=shape(op.results[0]))


@RULES.rewrites("stablehlo.dot")
def dot(op: Op, b: Builder) -> Value:
    """A product of matrices or vectors. The last dimension of `lhs` and the first dimension of `rhs` are contracted."""
    lhs, rhs = widened(op, b)
    rows = [1, *shape(lhs)] if len(shape(lhs)) == 1 else shape(lhs)
    columns = [*shape(rhs), 1] if len(shape(rhs)) == 1 else shape(rhs)
    product = b("ttir.matmul", b("ttir.reshape", lhs, shape=rows), b("ttir.reshape", rhs, shape=columns))
    return b("ttir.reshape", product, shape=shape(op.results[0]))


def widened(op: Op, b: Builder) -> list[Value]:
    """The operands in the element type of the result, which may be wider in StableHLO."""
    target = dtype(op.results[0])
    return [x if dtype(x) == target else b("ttir.typecast", x, dtype=target) for x in op.operands]


def _free(value: Value, taken: Sequence[int]) -> list[int]:
    return [d for d in range(len(shape(value))) if d not in taken]


def _arrange(b: Builder, x: Value, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> Value:
    """`x` with its dimensions in this order, and with rows and columns merged to one dimension each.

    Canonicalization removes permutes and reshapes that change nothing.
    """
    size = shape(x)
    x = b("ttir.permute", x, permutation=[*batch, *rows, *columns])
    collapsed = [math.prod(size[d] for d in group) for group in (rows, columns)]
    return b("ttir.reshape", x, shape=[*(size[d] for d in batch), *collapsed])
