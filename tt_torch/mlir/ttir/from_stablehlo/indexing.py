"""gather and scatter as look-ups and updates of rows.

The indexed dimensions of the operand are moved to the front and merged into one, and all others into a second. This
gives a table of rows. Each index vector becomes row numbers, one per position of its window, and both ops work on the
table. torch.gather, which looks up single elements along one dimension, needs no table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch_mlir import ir

from tt_torch.mlir.context import node_of
from tt_torch.mlir.rules import Builder, dtype, producer, shape, tensor
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.bodies import body_op
from tt_torch.mlir.ttir.from_stablehlo.arranging import flip, part, table_of
from tt_torch.mlir.ttir.from_stablehlo.creation import full, splat_of
from tt_torch.mlir.ttir.from_stablehlo.reduction import counts
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Op, Value

REDUCES = {"add": "Sum", "maximum": "Max", "minimum": "Min", "multiply": "Prod"}
LOGIC = {"or": "Max", "and": "Min"}  # for booleans, which are zeros and ones in bf16


@dataclass(frozen=True)
class Places:
    """The positions where windows begin: index vectors, flattened to (count, 1) per indexed dimension."""

    dims: list[int]
    starts: list[Value]
    count: int

    def rows(self, b: Builder, size: Sequence[int], window: Sequence[int]) -> Value:
        """The row numbers of all positions in the windows, (count * positions), in a table whose rows are `dims`
        merged."""
        total = None
        for i, start in enumerate(self.starts):
            stride = math.prod(size[d] for d in self.dims[i + 1 :])
            if stride != 1:
                start = b("ttir.multiply", start, full(b, [1, 1], dtype(start), stride))
            total = start if total is None else b("ttir.add", total, start)
        inside = [window[d] for d in self.dims]
        if math.prod(inside) != 1:
            total = b("ttir.add", total, _constant(b, _offsets([size[d] for d in self.dims], inside), dtype(total)))
        return b("ttir.reshape", total, shape=[self.count * math.prod(inside)])


def _offsets(sizes: list[int], window: list[int]) -> np.ndarray:
    """The row numbers of the positions in a window, relative to the first one."""
    return np.ravel_multi_index(np.indices(window).reshape(len(window), -1), sizes).reshape(1, -1)


def _constant(b: Builder, values: np.ndarray, element: ir.Type) -> Value:
    kind = tensor(values.shape, element)
    numbers = np.ascontiguousarray(values, np.int32 if str(element) == "i32" else np.uint32)
    return b("ttir.constant", type=kind, value=ir.DenseElementsAttr.get(numbers, type=kind))


def _places(b: Builder, indices: Value, vector_dim: int, dims: Sequence[int], batching: dict[int, int]) -> Places:
    """The start positions. `dims` are the operand's dimensions for the components of index vectors; `batching` maps
    batch dimensions of the operand to those of the indices."""
    if vector_dim == len(shape(indices)):
        indices = b("ttir.reshape", indices, shape=[*shape(indices), 1])
    order = [d for d in range(len(shape(indices))) if d != vector_dim] + [vector_dim]
    indices = b("ttir.permute", indices, permutation=order)
    size = shape(indices)[:-1]
    count = math.prod(size)
    vectors = b("ttir.reshape", indices, shape=[count, len(dims)])
    starts = [part(b, vectors, 1, i, i + 1) for i in range(len(dims))]
    for own in batching.values():
        along = own - (own > vector_dim)
        kind = tensor(size, dtype(indices))
        counted = b("ttir.arange", type=kind, start=0, end=size[along], step=1, arange_dimension=along)
        starts.append(b("ttir.reshape", counted, shape=[count, 1]))
    return Places([*dims, *batching], starts, count)


def _is_pytorchs(op: Op) -> bool:
    """Whether the program comes from PyTorch, where indices are in range: PyTorch raises an error if they are not."""
    return bool(node_of(op.location)[0])


@RULES.rewrites("stablehlo.gather")
def gather(op: Op, b: Builder) -> Value | None:
    """Windows that reach over an end are moved back. In dimensions without an index, windows begin at zero."""
    x, indices = op.operands
    dims, window = attrs.gather(op), attrs.ints(op, "slice_sizes")
    batching = dict(zip(dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True))
    if not list(dims.start_index_map) and not batching:
        return None
    if found := _along_one(op, batching):
        index, dim = found
        index = index if _is_pytorchs(op) else _within(b, index, shape(x)[dim] - 1)
        return b("ttir.gather", x, b("ttir.reshape", index, shape=shape(op.results[0])), dim=dim)
    places = _places(b, indices, dims.index_vector_dim, list(dims.start_index_map), batching)
    for d in range(len(window)):
        if d not in places.dims and window[d] != shape(x)[d]:
            x = part(b, x, d, 0, window[d])
    if not _is_pytorchs(op):
        starts = [_within(b, v, shape(x)[d] - window[d]) for d, v in zip(places.dims, places.starts, strict=True)]
        places = Places(places.dims, starts, places.count)
    table, rest = table_of(b, x, places.dims)
    looked_up = b("ttir.embedding", places.rows(b, shape(x), window), table)
    result, offsets = shape(op.results[0]), list(dims.offset_dims)
    batch = [d for d in range(len(result)) if d not in offsets]
    kept = [d for d in [*places.dims, *rest] if d not in dims.collapsed_slice_dims and d not in batching]
    # the dimensions of the result in the order of the look-up
    made = [*batch, *(offsets[sorted(kept).index(d)] for d in kept)]
    looked_up = b("ttir.reshape", looked_up, shape=[result[d] for d in made])
    return b("ttir.permute", looked_up, permutation=[made.index(d) for d in range(len(result))])


def _along_one(op: Op, batching: dict[int, int]) -> tuple[Value, int] | None:
    """The index, and the dimension along which it looks up, if the op is a torch.gather: it looks up single elements,
    and in all other dimensions their positions are those of the results. A vector is rather a table with one column."""
    (x, indices), dims, size = op.operands, attrs.gather(op), shape(op.results[0])
    mapped, rank = list(dims.start_index_map), len(size)
    if rank < 2 or len(shape(x)) != rank or 0 in size or list(dims.offset_dims) or dims.index_vector_dim != rank:
        return None
    joined = producer(indices, "ttir.concat") if len(mapped) > 1 else None
    parts = list(joined.operands) if joined else [indices]
    one_each = all(math.prod(shape(part)) == math.prod(size) for part in parts)
    if not one_each or len(parts) != len(mapped) or any(own != d for d, own in batching.items()):
        return None
    if {*mapped, *batching} != {*range(rank)}:  # a dimension without an index is read at 0
        return None
    found = [(part, d) for part, d in zip(parts, mapped, strict=True) if not _is_position(part, d)]
    if len(found) != 1:
        return None
    (index, dim), own = found[0], shape(x)
    return (index, dim) if all(size[d] <= own[d] for d in range(rank) if d != dim) else None


def _is_position(part: Value, dim: int) -> bool:
    """Whether a component of index vectors is the position of the result along `dim`."""
    return counts(part, dim) or (shape(part)[dim] == 1 and splat_of(part) == 0)


def _within(b: Builder, start: Value, latest: int) -> Value:
    one = [1] * len(shape(start))
    start = b("ttir.maximum", start, full(b, one, dtype(start), 0))
    return b("ttir.minimum", start, full(b, one, dtype(start), latest))


@RULES.rewrites("stablehlo.reverse")
def reverse(op: Op, b: Builder) -> Value:
    return flip(b, op.operands[0], attrs.ints(op, "dimensions") or [])


@RULES.rewrites("stablehlo.scatter")
def scatter(op: Op, b: Builder) -> Value | None:
    """Updates of windows that reach over an end are dropped: they are written to an extra row, which is removed."""
    if len(op.results) != 1:
        return None
    x, indices, updates = op.operands
    dims, size = attrs.scatter(op), shape(x)
    batching = dict(zip(dims.input_batching_dims, dims.scatter_indices_batching_dims, strict=True))
    reduces = REDUCES | LOGIC if isinstance(dtype(x), ir.BF16Type) else REDUCES
    reduce = "Invalid" if _overwrites(op) else reduces.get(body_op(op))
    if reduce is None or not (list(dims.scattered_dims_to_operand_dims) or batching):
        return None
    windows = list(dims.update_window_dims)
    kept = [d for d in range(len(size)) if d not in dims.inserted_window_dims and d not in batching]
    window = [1] * len(size)
    for d, w in zip(kept, windows, strict=True):
        window[d] = shape(updates)[w]
    places = _places(b, indices, dims.index_vector_dim, list(dims.scattered_dims_to_operand_dims), batching)
    zero = full(b, [1, 1], dtype(places.starts[0]), 0)
    partial = [d for d, n in enumerate(size) if d not in places.dims and window[d] != n]  # windows begin at zero
    places = Places([*places.dims, *partial], [*places.starts, *[zero] * len(partial)], places.count)
    rows = places.rows(b, size, window)
    table, rest = table_of(b, x, places.dims)
    batch = [d for d in range(len(shape(updates))) if d not in windows]
    inside = [windows[kept.index(d)] for d in [*places.dims, *rest] if d in kept]
    source = b("ttir.permute", updates, permutation=[*batch, *inside])
    source = b("ttir.reshape", source, shape=[shape(rows)[0], shape(table)[1]])
    written = updated(b, table, source, reduce, rows, None if _is_pytorchs(op) else _inside(b, places, size, window))
    order = [*places.dims, *rest]
    written = b("ttir.reshape", written, shape=[size[d] for d in order])
    return b("ttir.permute", written, permutation=[order.index(d) for d in range(len(order))])


def _inside(b: Builder, places: Places, size: Sequence[int], window: Sequence[int]) -> Value:
    """Booleans of shape (count, 1): whether each window is inside of the operand."""
    inside = None
    for d, start in zip(places.dims, places.starts, strict=True):
        for name, limit in (("ge", 0), ("le", size[d] - window[d])):
            one = b(f"ttir.{name}", start, full(b, [1, 1], dtype(start), limit))
            inside = one if inside is None else b("ttir.logical_and", inside, one)
    return inside


def updated(b: Builder, table: Value, source: Value, reduce: str, rows: Value, inside: Value | None) -> Value:
    """The table after the rows of the source are written or reduced into the given rows; rows outside are skipped."""
    size = shape(table)
    if inside is not None:
        table = b("ttir.concat", [table, full(b, [1, size[1]], dtype(table), 0)], dim=0)
        per_window = b("ttir.reshape", rows, shape=[shape(inside)[0], shape(rows)[0] // shape(inside)[0]])
        rows = b("ttir.where", inside, per_window, full(b, [1, 1], dtype(rows), size[0]))
    index = b("ttir.reshape", rows, shape=[shape(source)[0], 1])
    index = b("ttir.broadcast", index, broadcast_dimensions=[1, size[1]])
    written = b("ttir.scatter", table, index, source, dim=0, scatter_reduce_type=reduce)
    return written if inside is None else part(b, written, 0, 0, size[0])


def _overwrites(op: Op) -> bool:
    """Whether the body only returns its second argument, which is the update."""
    block = op.operation.regions[0].blocks[0]
    return len(list(block.operations)) == 1 and block.operations[0].operands[0] == block.arguments[1]
