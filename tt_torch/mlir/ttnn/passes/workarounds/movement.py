"""Data movement and conversion."""

from __future__ import annotations

import math

from tt_torch.mlir import ods
from tt_torch.mlir.rules import Builder, producer, shape
from tt_torch.mlir.ttir.constness import is_constant
from tt_torch.mlir.ttnn import legality
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout
from tt_torch.mlir.ttnn.passes.workarounds.registry import full, make, reshape, typecast, workaround
from tt_torch.mlir.types import Op, Value

LARGE = 1 << 26  # bytes of a chip's memory for float32 filters that are prepared


@workaround("ttnn.typecast")
def conversion_of_bytes(op: Op, b: Builder) -> Value | None:
    """Bytes of an input are converted before they become tiles:

    "Can only tilize bfloat16/float32 or int32/uint32/uint16 or fp8_e4m3 tensors"
    """
    (x,) = op.operands
    if layout_of(x).dtype != "UInt8" or layout_of(x).tiled or not layout_of(op.results[0]).tiled:
        return None
    return typecast(b, x, layout_of(op.results[0]).dtype, tiled=False)


@workaround("ttnn.multiply", "ttnn.typecast")
def filters_as_matrices(op: Op, b: Builder) -> Value | None:
    """Filters of a convolution are scaled and converted as a matrix with one row per filter, which is made on the host.
    In tiles, a 1x1 filter would take 1024 times its size. ResNet-50 would need

    "Not enough space to allocate 8589934592 B DRAM buffer across 12 banks"
    """
    result = op.results[0]
    if not _are_large_filters(result) or any(_are_large_filters(x) and _is_matched(x) for x in op.operands):
        return None
    filters = shape(result)
    operands = [_filters_to_rows(b, x, filters) for x in op.operands]
    if any(x is None for x in operands):
        return None
    made = with_layout([filters[0], math.prod(filters[1:])], layout_of(result))
    return _on_host(b, b(op.name, *operands, type=made, **ods.attrs_of(op)), filters)


def _are_large_filters(x: Value) -> bool:
    size, layout = shape(x), layout_of(x)
    large = Layout("Float32").bytes(size) > LARGE
    return len(size) == 4 and layout.on_device and layout.tiled and large and is_constant(x)


def _is_matched(x: Value) -> bool:
    """Whether the rule above applies to the op that makes `x`; then that op is rewritten first."""
    return producer(x, "ttnn.multiply", "ttnn.typecast") is not None


def _filters_to_rows(b: Builder, x: Value, filters: list[int]) -> Value | None:
    """Filters as a matrix, or one number per filter or for all; None for other shapes."""
    rows = [filters[0], math.prod(filters[1:])]
    if shape(x) == filters:
        before = producer(x, "ttnn.reshape")
        return before.operands[0] if before and shape(before.operands[0]) == rows else _on_host(b, x, rows)
    if shape(x) == [filters[0], 1, 1, 1]:
        return reshape(b, x, [filters[0], 1])
    return x if shape(x) in ([], [1]) else None


def _on_host(b: Builder, x: Value, sizes: list[int]) -> Value:
    host = Layout(layout_of(x).dtype, tiled=False, buffer="SystemMemory")
    return b("ttnn.reshape", x, type=with_layout(sizes, host), shape=sizes)


@workaround("ttnn.pad")
def padding_before_the_first_row(op: Op, b: Builder) -> Value | None:
    """Rows are padded at their beginning in row-major layout:

    "ttnn.pad: on device tile padding does not support front padding"
    """
    if not any(ods.attr(op, "padding")[::2]) or not layout_of(op.results[0]).tiled:
        return None
    return make(b, "pad", *op.operands, tiled=False, **ods.attrs_of(op))


@workaround("ttnn.scatter")
def scatter_of_float32(op: Op, b: Builder) -> Value | None:
    """float32 is scattered in row-major layout:

    "Scatter doesn't work for fp32 tiled tensors yet"
    """
    if layout_of(op.results[0]) != Layout("Float32"):
        return None
    return make(b, "scatter", *op.operands, tiled=False, **ods.attrs_of(op))


@workaround("ttnn.gather")
def elements_of_vectors(op: Op, b: Builder) -> Value | None:
    """Elements of a vector are gathered from a matrix with one row:

    "Can't convert shape rank"
    """
    x, index = op.operands
    return None if len(shape(x)) > 1 else gather(b, x, index, ods.attr(op, "dim"))


def gather(b: Builder, x: Value, index: Value, dim: int) -> Value:
    """torch.gather, also for vectors."""
    if len(shape(x)) != 1:
        return make(b, "gather", x, index, dim=dim)
    x, index = (reshape(b, v, [1, *shape(v)]) for v in (x, index))
    return reshape(b, make(b, "gather", x, index, dim=1), shape(index)[1:])


@workaround("ttnn.reduce_scatter")
def sums_of_vectors(op: Op, b: Builder) -> Value | None:
    """The chips scatter the sum of a matrix with one row instead of that of a vector:

    "reduce_scatter currently supports rank 2 tensors at minimum"
    """
    (x,), (result,) = op.operands, op.results
    if len(shape(x)) != 1:
        return None
    kind, axis = with_layout([1, *shape(result)], layout_of(result)), ods.attr(op, "cluster_axis")
    row = reshape(b, x, [1, *shape(x)])
    return reshape(b, b("ttnn.reduce_scatter", row, type=kind, scatter_dim=1, cluster_axis=axis), shape(result))


@workaround("ttnn.embedding")
def embedding_of_types_other_than_bfloat16(op: Op, b: Builder) -> Value | None:
    """Rows of a table that is not bfloat16 are gathered element by element, which is exact:

    "Weights tensor must have BFLOAT16 dtype"
    """
    indices, table = op.operands
    if 0 in shape(op.results[0]):  # nothing is gathered, and there may be no row
        return full(b, 0, layout_of(table).dtype, shape(op.results[0]))
    if legality.takes(op, table):
        return None
    width, count = shape(table)[-1], math.prod(shape(indices))
    table = reshape(b, table, [math.prod(shape(table)[:-1]), width])
    columns = reshape(b, indices, [count, 1])
    if width > 1:
        columns = typecast(b, columns, "UInt32")  # as gather takes it: before the repeat, it is smaller
        columns = make(b, "repeat", columns, repeat_dims=[1, width])
    rows = gather(b, table, columns, 0)
    return reshape(b, rows, shape(op.results[0]))


@workaround("ttnn.scatter")
def scatter_of_maximum_or_minimum(op: Op, b: Builder) -> Value | None:
    """Each element of the result is compared with all elements that are scattered to its position:

    "reduce must be either 'add' or 'multiply' (case-sensitive), got amax"
    """
    (x, index, source), a = op.operands, ods.attrs_of(op)
    if a["scatter_reduce_type"] in legality.SCATTERED:
        return None
    largest, dtype = a["scatter_reduce_type"] == "Max", layout_of(x).dtype
    last = len(shape(x)) - 1
    x, index, source = (_dim_last(b, v, a["dim"]) for v in (x, index, source))
    length = shape(x)[-1]
    padding = [p for own, there in zip(shape(index)[:-1], shape(x), strict=False) for p in (0, there - own)] + [0, 0]
    if any(padding):  # with positions that do not exist
        index = make(b, "pad", index, padding=padding, value=float(length))
        source = make(b, "pad", source, padding=padding, value=0.0)
    apart = [*shape(index), 1]
    goes = make(b, "eq", reshape(b, index, apart), _numbers(b, length, layout_of(index).dtype), dtype="BFloat16")
    least = _least(dtype) if largest else _greatest(dtype)
    spread = make(b, "where", goes, reshape(b, source, apart), full(b, least, dtype, [1]), dtype=dtype)
    found = make(b, "max" if largest else "min", spread, dim_arg=[last], keep_dim=False)
    return _dim_last(b, make(b, "maximum" if largest else "minimum", x, found), a["dim"])


def _least(dtype: str) -> float | int:
    return -math.inf if dtype in legality.FLOATS else -(2**31) if dtype == "Int32" else 0


def _greatest(dtype: str) -> float | int:
    return math.inf if dtype in legality.FLOATS else 2**31 - 1 if dtype == "Int32" else 2**32 - 1


def _dim_last(b: Builder, x: Value, dim: int) -> Value:
    """Exchanges a dimension with the last one."""
    order = list(range(len(shape(x))))
    order[dim], order[-1] = order[-1], order[dim]
    return x if order == sorted(order) else make(b, "permute", x, permutation=order)


def _numbers(b: Builder, length: int, dtype: str) -> Value:
    kind = with_layout([length], Layout(dtype, tiled=False))
    return b("ttnn.arange", type=kind, start=0.0, end=float(length), step=1.0)
