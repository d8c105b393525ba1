"""gather and scatter as look-ups and updates of rows.

The indexed dimensions of the operand are moved to the front and collapsed into one, the others into a second:
a table of rows. Index vectors become row numbers, and both ops work on the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.arranging import flip, table_of
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.ttir.from_stablehlo.reduction import body_op
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES

REDUCES = {"add": "Sum", "maximum": "Max", "minimum": "Min", "multiply": "Prod"}


def _rows(b: Builder, indices: Any, vector_dim: int, sizes: Sequence[int]) -> Any:
    """Row numbers from index vectors, whose components count dimensions of `sizes`; vectors flattened."""
    if vector_dim == len(shape(indices)):
        indices = b("ttir.reshape", indices, shape=[*shape(indices), 1])
    order = [d for d in range(len(shape(indices))) if d != vector_dim] + [vector_dim]
    indices = b("ttir.permute", indices, permutation=order)
    count = math.prod(shape(indices)[:-1])
    vectors = b("ttir.reshape", indices, shape=[count, len(sizes)])
    total = None
    for i in range(len(sizes)):
        part = b("ttir.slice_static", vectors, begins=[0, i], ends=[count, i + 1], step=[1, 1])
        stride = math.prod(sizes[i + 1 :])
        if stride != 1:
            part = b("ttir.multiply", part, full(b, [1, 1], dtype(part), stride))
        total = part if total is None else b("ttir.add", total, part)
    return b("ttir.reshape", total, shape=[count])


@RULES.rewrites("stablehlo.gather")
def gather(op: Any, b: Builder) -> Any:
    x, indices = op.operands
    dims = attrs.gather(op)
    indexed, sizes = list(dims.start_index_map), attrs.ints(op, "slice_sizes")
    whole = all(sizes[d] == (1 if d in indexed else s) for d, s in enumerate(shape(x)))
    if (
        not indexed
        or not whole
        or list(dims.operand_batching_dims)
        or sorted(dims.collapsed_slice_dims) != sorted(indexed)
    ):
        return None
    table, rest = table_of(b, x, indexed)
    rows = _rows(b, indices, dims.index_vector_dim, [shape(x)[d] for d in indexed])
    looked_up = b("ttir.embedding", rows, table)
    result, offsets = shape(op.results[0]), list(dims.offset_dims)
    batch = [d for d in range(len(result)) if d not in offsets]
    made = [*batch, *offsets]  # the result's dimensions in the order in which the look-up has them
    looked_up = b("ttir.reshape", looked_up, shape=[*(result[d] for d in batch), *(shape(x)[d] for d in rest)])
    return b("ttir.permute", looked_up, permutation=[made.index(d) for d in range(len(result))])


@RULES.rewrites("stablehlo.reverse")
def reverse(op: Any, b: Builder) -> Any:
    return flip(b, op.operands[0], attrs.ints(op, "dimensions") or [])


@RULES.rewrites("stablehlo.scatter")
def scatter(op: Any, b: Builder) -> Any:
    if len(op.results) != 1:
        return None
    x, indices, updates = op.operands
    dims = attrs.scatter(op)
    indexed, windows = list(dims.scattered_dims_to_operand_dims), list(dims.update_window_dims)
    reduce = "Invalid" if _overwrites(op) else REDUCES.get(body_op(op))
    rest_whole = [shape(updates)[w] for w in windows] == [s for d, s in enumerate(shape(x)) if d not in indexed]
    if reduce is None or not indexed or sorted(dims.inserted_window_dims) != sorted(indexed) or not rest_whole:
        return None
    table, rest = table_of(b, x, indexed)
    rows = _rows(b, indices, dims.index_vector_dim, [shape(x)[d] for d in indexed])
    batch = [d for d in range(len(shape(updates))) if d not in windows]
    count, columns = shape(rows)[0], shape(table)[1]
    source = b("ttir.permute", updates, permutation=[*batch, *windows])
    source = b("ttir.reshape", source, shape=[count, columns])
    index = b("ttir.reshape", rows, shape=[count, 1])
    index = b("ttir.broadcast", index, broadcast_dimensions=[1, columns])
    written = b("ttir.scatter", table, index, source, dim=0, scatter_reduce_type=reduce)
    order = [*indexed, *rest]
    written = b("ttir.reshape", written, shape=[shape(x)[d] for d in order])
    return b("ttir.permute", written, permutation=[order.index(d) for d in range(len(order))])


def _overwrites(op: Any) -> bool:
    """Whether the body only returns its second argument, the update."""
    block = op.operation.regions[0].blocks[0]
    return len(list(block.operations)) == 1 and block.operations[0].operands[0] == block.arguments[1]
