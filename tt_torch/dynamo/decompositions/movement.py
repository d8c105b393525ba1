"""Views, slices and padding."""

from __future__ import annotations

from collections.abc import Sequence
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import (
    DECOMPOSITIONS,
    decomposes,
    from_memory_order,
    lengths,
    memory_order,
    strided_like,
)
from tt_torch.dynamo.types import Argument

aten = torch.ops.aten
_unfold_backward = DECOMPOSITIONS[aten.unfold_backward.default]


@decomposes(aten.slice_scatter.default)
def slice_scatter(
    x: Tensor, source: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """slice_scatter with `end` inside of the dimension; otherwise torch-mlir needs unbounded memory."""
    dim, size = lengths(x, dim)
    source = source.to(x.dtype)
    begin, stop, _ = slice(start, end).indices(size)
    if step != 1:
        rows = aten.index_put(x.movedim(dim, 0), [torch.arange(begin, stop, step)], source.movedim(dim, 0))
        return strided_like(rows.movedim(0, dim), x)
    stop = max(begin, stop)
    parts = [x.narrow(dim, 0, begin), source, x.narrow(dim, stop, size - stop)]
    return strided_like(torch.cat([p for p in parts if p.shape[dim]] or [x], dim), x)


@decomposes(aten.select_scatter.default)
def select_scatter(x: Tensor, source: Tensor, dim: int, index: int) -> Tensor:
    """select_scatter by position. This works for a symbolic size, too."""
    dim, size = lengths(x, dim)
    source = source.to(x.dtype)
    places = torch.arange(size).reshape([-1] + [1] * (x.dim() - 1 - dim))
    return strided_like(torch.where(places == (index if index >= 0 else size + index), source.unsqueeze(dim), x), x)


@decomposes(aten.unfold_backward.default)
def unfold_backward(gradient: Tensor, input_size: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    """PyTorch's own, which forgets that a scalar may have a window of nothing. It also adds to zeros, which makes 0.0
    of -0.0. Windows that have each element once only change the order, so nothing is added."""
    if not input_size and not size:
        return torch.zeros((), dtype=gradient.dtype)
    first = dim % len(input_size) if input_size else 0
    if input_size and size == step and input_size[first] == gradient.shape[first] * size:
        return gradient.movedim(-1, first + 1).reshape(input_size).contiguous()
    result: Tensor = _unfold_backward(gradient, input_size, dim, size, step)
    return result


@decomposes(aten._efficientzerotensor.default)
def efficient_zeros(size: Sequence[int], **options: Argument) -> Tensor:
    """A gradient of zero, such as the gradient of `sgn`. PyTorch gives it no memory."""
    return torch.zeros(size, **options)


@decomposes(aten.block_diag.default)
def block_diag(tensors: Sequence[Tensor]) -> Tensor:
    """The result has the dtype of a sum of all tensors: the dtype of a scalar counts less than that of a tensor with
    dimensions."""
    kinds: dict[bool, torch.dtype] = {}  # True: the dtype of the tensors with dimensions. False: the dtype of scalars
    for x in tensors:
        kinds[x.dim() > 0] = torch.promote_types(kinds.get(x.dim() > 0, x.dtype), x.dtype)
    dtype = kinds[True] if True in kinds else kinds[False]
    if len(kinds) == 2:
        dtype = torch.result_type(torch.empty(1, dtype=dtype), torch.empty((), dtype=kinds[False]))
    blocks = [x.to(dtype).reshape(1, -1) if x.dim() < 2 else x.to(dtype) for x in tensors]
    columns, rows, start = sum(x.shape[1] for x in blocks), [], 0
    for x in blocks:
        after = columns - start - x.shape[1]
        rows.append(torch.cat([x.new_zeros(x.shape[0], start), x, x.new_zeros(x.shape[0], after)], 1))
        start += x.shape[1]
    return torch.cat(rows)


@decomposes(aten.squeeze.dims)
def squeeze(x: Tensor, dims: Sequence[int]) -> Tensor:
    dropped = {lengths(x, d)[0] for d in dims}
    return x.reshape([s for d, s in enumerate(x.shape) if d not in dropped or s != 1])


def _diagonal_places(rows: int, columns: int, offset: int) -> Tensor:
    """The positions of a diagonal in flattened matrices."""
    first = offset if offset >= 0 else -offset * columns
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    return first + torch.arange(count) * (columns + 1)


@decomposes(aten.diagonal.default, aten.diagonal_copy.default)
def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    x = x.movedim((dim1, dim2), (-2, -1))
    return x.flatten(-2).index_select(-1, _diagonal_places(x.shape[-2], x.shape[-1], offset))


@decomposes(aten.diagonal_scatter.default)
def diagonal_scatter(x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    moved = x.movedim((dim1, dim2), (-2, -1))
    places = _diagonal_places(moved.shape[-2], moved.shape[-1], offset)
    flat = aten.index_copy(moved.flatten(-2), -1, places, source.to(x.dtype))
    return strided_like(flat.reshape(moved.shape).movedim((-2, -1), (dim1, dim2)), x)


@decomposes(aten.slice_copy.Tensor)
def slice_copy(x: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return aten.slice.Tensor(x, dim, start, end, step).clone()


@decomposes(aten.select_copy.int)
def select_copy(x: Tensor, dim: int, index: int) -> Tensor:
    return x.select(dim, index).clone()


@decomposes(aten.split_copy.Tensor)
def split_copy(x: Tensor, size: int, dim: int = 0) -> list[Tensor]:
    return [part.clone() for part in x.split(size, dim)]


@decomposes(aten.flip.default)
def flip(x: Tensor, dims: Sequence[int]) -> Tensor | NotImplementedType:
    """A scalar stays as it is. torch-mlir does not find its dimension 0."""
    return NotImplemented if x.dim() else x.clone()


@decomposes(aten.roll.default)
def roll(x: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    if not dims:
        return roll(x.reshape(-1), shifts, [0]).reshape(x.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        dim, size = lengths(x, dim)
        start = -shift % size if size and x.dim() else 0
        if start:
            x = torch.cat([x.narrow(dim, start, size - start), x.narrow(dim, 0, start)], dim)
    return x.clone()


@decomposes(aten.unfold.default, aten.unfold_copy.default)
def unfold(x: Tensor, dim: int, size: int, step: int) -> Tensor:
    if not x.dim():
        return x.reshape(1).narrow(0, 0, size)
    dim, length = lengths(x, dim)
    starts = torch.arange(0, length - size + 1, step)
    places = starts.unsqueeze(1) + torch.arange(size)
    return x.index_select(dim, places.flatten()).unflatten(dim, places.shape).movedim(dim + 1, -1)


def _strided_places(x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Tensor | None:
    """The positions that strides lead to, in a tensor without gaps in memory. None if the tensor has gaps, or if the
    strides reach elements of its storage that are not in the tensor."""
    first = 0 if offset is None else offset - int(x.storage_offset())
    last = first + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    if not x.permute(memory_order(x)).is_contiguous() or first < 0 or (last >= x.numel() and 0 not in size):
        return None
    places = torch.full((), first)
    for i, (count, step) in enumerate(zip(size, stride, strict=True)):
        places = places + (torch.arange(count) * step).reshape([-1] + [1] * (len(size) - 1 - i))
    return places.flatten()


@decomposes(aten.as_strided.default, aten.as_strided_copy.default)
def as_strided(
    x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Tensor | NotImplementedType:
    places = _strided_places(x, size, stride, offset)
    if places is None:
        return NotImplemented
    return x.permute(memory_order(x)).reshape(-1).index_select(0, places).reshape(list(size))


@decomposes(aten.as_strided_scatter.default)
def as_strided_scatter(
    x: Tensor, source: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Tensor | NotImplementedType:
    places = _strided_places(x, size, stride, offset)
    if places is None:
        return NotImplemented
    moved = x.permute(memory_order(x))
    flat = aten.index_copy(moved.reshape(-1), 0, places, source.reshape(-1))
    return from_memory_order(flat.reshape(moved.shape), memory_order(x))


@decomposes(aten.constant_pad_nd.default)
def constant_pad_nd(x: Tensor, pad: Sequence[int], value: float = 0) -> Tensor | NotImplementedType:
    """Negative padding becomes a slice. Other padding is left to torch-mlir, with booleans as integers."""
    if x.dtype is torch.bool:
        return aten.constant_pad_nd(x.to(torch.int32), pad, int(bool(value))) != 0
    if not any(p < 0 for p in pad) or not any(p > 0 for p in pad):
        return NotImplemented
    for i, (low, high) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        dim = x.dim() - 1 - i
        x = x.narrow(dim, max(0, -low), x.shape[dim] - max(0, -low) - max(0, -high))
    return aten.constant_pad_nd(x, [max(0, p) for p in pad], value)


@decomposes(aten.fill.Tensor)
def fill(x: Tensor, value: Tensor) -> Tensor:
    return value.to(x.dtype).expand(x.shape).clone()
