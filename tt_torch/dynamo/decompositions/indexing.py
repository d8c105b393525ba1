"""Reading and writing by index."""

from __future__ import annotations

from collections.abc import Sequence
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import decomposes, lengths
from tt_torch.torch_private.ops import OpOverload

aten = torch.ops.aten


@decomposes(aten._unsafe_index_put.default, aten._unsafe_index_put.hacked_twin)
def unsafe_index_put(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    return aten.index_put(x, indices, values, accumulate)


@decomposes(aten._unsafe_index.Tensor)
def unsafe_index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return aten.index(x, indices)


@decomposes(aten.take.default)
def take(x: Tensor, index: Tensor) -> Tensor:
    return aten.index(x.reshape(-1), [index.reshape(-1)]).reshape(index.shape)


def _along(index: Tensor, source: Tensor, dim: int) -> Tensor:
    """Positions along one dimension, for each element of `source`."""
    return index.reshape([-1 if d == dim else 1 for d in range(source.dim())]).expand(source.shape)


@decomposes(aten.index_copy.default)
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    dim, _ = lengths(x, dim)
    return x.scatter(dim, _along(index, source, dim), source)


@decomposes(aten.index_add.default)
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, alpha: float = 1) -> Tensor:
    dim, _ = lengths(x, dim)
    return x.scatter_add(dim, _along(index, source, dim), source if alpha == 1 else source * alpha)


@decomposes(aten.index_fill.int_Scalar, aten.index_fill.int_Tensor)
def index_fill(x: Tensor, dim: int, index: Tensor, value: float | Tensor) -> Tensor:
    dim, _ = lengths(x, dim)
    rows, one = [None] * dim + [index.reshape(-1)], index.new_empty(())
    source = value.to(x.dtype) if isinstance(value, Tensor) else _source(one, value, x.dtype)
    return aten.index_put(x.reshape(x.shape or 1), rows, source).reshape(x.shape)


@decomposes(aten.put.default)
def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    return aten.index_put(x.reshape(-1), [index.reshape(-1)], source.reshape(-1), accumulate).reshape(x.shape)


@decomposes(aten.index_put.default)
def index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor | NotImplementedType:
    """index_put with one mask, or with one index. All elements selected by a mask get the same value, or there is one
    value per element."""
    given = [(d, i) for d, i in enumerate(indices) if i is not None]
    if any(i.dtype is torch.uint8 for _, i in given):  # they are masks, too
        masks = [i.to(torch.bool) if i is not None and i.dtype is torch.uint8 else i for i in indices]
        return aten.index_put(x, masks, values, accumulate)
    if any(not i.numel() for _, i in given):
        return x.clone()
    if given and all(i.dim() == 0 and i.dtype is not torch.bool for _, i in given):
        return _at_one_place(x, dict(given), values, accumulate)
    dims = [d for d, _ in given]
    if dims and dims != [*range(dims[0], dims[-1] + 1)] and all(i.dtype is not torch.bool for _, i in given):
        return _side_by_side(x, dict(given), values, accumulate)
    if len(given) != 1 or given[0][1].dtype is not torch.bool:
        one = len(given) == 1 and given[0][1].shape == (1,) and values.dtype is x.dtype and not accumulate
        return _with_one_row(x, *given[0], values) if one else NotImplemented
    if not values.numel():
        return x.clone()
    values = values.to(x.dtype)  # eager takes one value of any dtype, and with any number of dimensions
    if values.numel() == 1:
        values = values.reshape(())
    ((first, mask),) = given
    after = x.dim() - first - mask.dim()
    at = values.dim() - after - 1  # the dimension of the selected elements, if the values have one
    if at >= 0 and values.shape[at] != 1:
        place = (mask.reshape(-1).to(torch.int64).cumsum(0) - 1).clamp(0, values.shape[at] - 1)
        values = values.index_select(at, place).unflatten(at, mask.shape)
    elif at >= 0:
        values = values.reshape([*values.shape[:at], *[1] * mask.dim(), *values.shape[at + 1 :]])
    mask = mask.reshape([*mask.shape, *[1] * after])
    if accumulate and x.dtype is torch.bool:
        return x | (mask & values)
    return x + torch.where(mask, values, 0) if accumulate else torch.where(mask, values, x)


def _at_one_place(x: Tensor, given: dict[int, Tensor], values: Tensor, accumulate: bool) -> Tensor:
    """`x[i] = values` for indices without dimensions, which end torch-mlir's process. Each becomes a list of one index,
    whose dimension in the values is that of the first index, or 0 if there are dimensions between the indices."""
    dims = list(given)
    values = values.expand([size for d, size in enumerate(x.shape) if d not in given])
    at = dims[0] if dims == [*range(dims[0], dims[-1] + 1)] else 0
    lists = [given[d].reshape(1) if d in given else None for d in range(dims[-1] + 1)]
    return aten.index_put(x, lists, values.unsqueeze(at), accumulate)


def _side_by_side(x: Tensor, given: dict[int, Tensor], values: Tensor, accumulate: bool) -> Tensor:
    """`x[i, :, j] = values`, which torch-mlir does not have. If there are dimensions between the indices, those of the
    indices come first in the values, as they do for indices of the first dimensions."""
    order = [*given, *(d for d in range(x.dim()) if d not in given)]
    back = [order.index(d) for d in range(x.dim())]
    return aten.index_put(x.permute(order), list(given.values()), values, accumulate).permute(back)


def _with_one_row(x: Tensor, dim: int, index: Tensor, values: Tensor) -> Tensor:
    """One row along a dimension is written: `cache[:, :, position] = row`. A scatter of one row updates a cache."""
    row = values.expand([1 if d == dim else size for d, size in enumerate(x.shape)])
    place = torch.where(index < 0, index + x.shape[dim], index).to(torch.int64)
    return x.scatter(dim, _along(place, row, dim), row)


@decomposes(aten.masked_fill.Scalar)
def masked_fill(x: Tensor, mask: Tensor, value: float) -> Tensor | NotImplementedType:
    """For booleans, torch-mlir would only use the lowest bit of the number."""
    return torch.where(mask, torch.full((), bool(value)), x) if x.dtype is torch.bool else NotImplemented


@decomposes(aten.masked_scatter.default)
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Writes the elements of the source, in order, to the selected positions."""
    x, mask = torch.broadcast_tensors(x, mask)
    if not source.numel():
        return x.clone()
    place = (mask.reshape(-1).to(torch.int64).cumsum(0) - 1).clamp(0, source.numel() - 1)
    return torch.where(mask, source.reshape(-1)[place].reshape(x.shape), x)


def _with_dimensions(*tensors: Tensor) -> list[Tensor] | None:
    """The tensors of a scatter, with a dimension for each that has none; None if all have dimensions. Eager PyTorch
    takes any mixture."""
    if all(x.dim() for x in tensors):
        return None
    return [x if x.dim() else x.reshape(1) for x in tensors]


def _composed(op: OpOverload) -> None:
    """Registers the form of `op` for scalars, for booleans (as integers), and for an empty index."""

    def of_others(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor | NotImplementedType:
        if not index.numel():  # of any number of dimensions
            return x.clone()
        if given := _with_dimensions(x, index, source):
            return op(given[0], 0, *given[1:]).reshape(x.shape)
        if x.dtype is torch.bool:
            return op(x.to(torch.int32), dim, index, source.to(torch.int32)) != 0
        return NotImplemented  # a composite

    decomposes(op)(of_others)


_composed(aten.scatter.src)
_composed(aten.scatter_add.default)


# --- reductions by index

# The initial value of a sum or product if the element's own value is not included.
NEUTRAL = {"sum": 0, "mean": 0, "prod": 1}


@decomposes(aten.scatter_reduce.two)
def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor | NotImplementedType:
    """A plain reduction becomes a composite. A mean is computed as a sum and a count, and booleans as integers."""
    if not index.numel():  # of any number of dimensions
        return x.clone()
    if x.dtype is torch.bool:
        own, others = x.to(torch.int32), source.to(torch.int32)
        reduce = "amin" if reduce == "prod" else reduce
        return aten.scatter_reduce(own, dim, index, others, reduce, include_self=include_self) != 0
    if given := _with_dimensions(x, index, source):
        return aten.scatter_reduce(given[0], 0, *given[1:], reduce, include_self=include_self).reshape(x.shape)
    if include_self and reduce != "mean":
        return NotImplemented
    # For the largest and for the smallest element, the reduction may start at any element of the source.
    start = x if include_self else x.scatter(dim, index, NEUTRAL.get(reduce, source))
    if reduce != "mean":
        return aten.scatter_reduce(start, dim, index, source, reduce)
    total = start.scatter_add(dim, index, source)
    ones = torch.ones(index.shape, dtype=x.dtype)
    count = torch.full(x.shape, int(include_self), dtype=x.dtype).scatter_add(dim, index, ones)
    count = torch.where(count == 0, 1, count)  # a count of int8 beyond 127 is negative, in eager PyTorch, too
    return total / count if x.is_floating_point() else torch.div(total, count, rounding_mode="floor")


# The names of reductions in torch.scatter.
REDUCTIONS = {"add": "sum", "multiply": "prod"}


@decomposes(aten.scatter.reduce)
def scatter_with(x: Tensor, dim: int, index: Tensor, source: Tensor, *, reduce: str) -> Tensor:
    return torch.scatter_reduce(x, dim, index, source, REDUCTIONS[reduce])


@decomposes(aten.scatter.value_reduce)
def scatter_value_with(x: Tensor, dim: int, index: Tensor, value: float, *, reduce: str) -> Tensor:
    return torch.scatter_reduce(x, dim, index, _source(index, value, x.dtype), REDUCTIONS[reduce])


def _source(index: Tensor, value: float, dtype: torch.dtype) -> Tensor:
    """One element with `value` for each index. A scatter refuses a number that `dtype` does not have. A fill also
    refuses it, but only if it fills several elements."""
    return torch.full((2,), value, dtype=dtype)[0].expand(index.shape)


@decomposes(aten.index_reduce.default)
def index_reduce(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    dim, _ = lengths(x, dim)
    places = _along(index, source, dim)
    return torch.scatter_reduce(x, dim, places, source, reduce, include_self=include_self)


@decomposes(aten.scatter.value)
def scatter_value(x: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    if index.numel() == 0:  # eager ignores the value, even if the dtype does not have it
        return x.clone()
    return x.scatter(dim, index, _source(index, value, x.dtype))
