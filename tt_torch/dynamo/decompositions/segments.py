"""Reductions over runs of neighbouring elements: segments, and bags of embeddings."""

from __future__ import annotations

import math
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import decomposes

aten = torch.ops.aten

# Reductions by name, each with its name in scatter_reduce and its initial value.
STARTS = {"sum": ("sum", 0.0), "mean": ("sum", 0.0), "prod": ("prod", 1.0)}
STARTS |= {"max": ("amax", -math.inf), "min": ("amin", math.inf)}
BAGS = "sum", "mean", "max"  # the modes of embedding_bag
LARGEST_PAIRS = 1 << 26  # pairs of two elements that a device compares: 256 MB of int32; more are left to the host
LARGEST = 1 << 22  # pairs of a position and a segment that are compared; for more, the segments are searched


def _segment_of(place: Tensor, offsets: Tensor) -> Tensor:
    """The segment of each position: the last one that begins at or before it, or -1 before the first."""
    if place.numel() * offsets.numel() <= LARGEST:
        return (place.unsqueeze(-1) >= offsets.unsqueeze(-2)).sum(-1) - 1
    places = place.expand(*offsets.shape[:-1], *place.shape).contiguous()
    return torch.searchsorted(offsets.contiguous(), places.to(offsets.dtype), right=True) - 1


def _reduce(rows: Tensor, segment: Tensor, count: int, reduce: str, start: float) -> Tensor:
    """`rows` reduced along the last dimension of `segment`. Rows outside of all segments go into an extra one."""
    axis = segment.dim() - 1
    segment = torch.where(segment < 0, count, segment)
    places = segment.reshape(segment.shape + (1,) * (rows.dim() - segment.dim())).expand(rows.shape)
    shape = [count + 1 if d == axis else size for d, size in enumerate(rows.shape)]
    return rows.new_full(shape, start).scatter_reduce(axis, places, rows, reduce).narrow(axis, 0, count)


@decomposes(aten.segment_reduce.default)
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor | NotImplementedType:
    """Lengths or offsets give the segments along `axis`, which is the last dimension of the lengths or offsets."""
    if offsets is None and lengths is not None:
        offsets = torch.nn.functional.pad(lengths.cumsum(-1), (1, 0))
    if offsets is None or indices is not None or not data.numel():
        return NotImplemented
    segment = _segment_of(torch.arange(data.shape[axis]), offsets)
    count = offsets.shape[-1] - 1
    segment = torch.where(segment < count, segment, -1)
    name, start = STARTS[reduce]
    wide = data.to(torch.float32) if data.dtype in (torch.bfloat16, torch.float16) else data
    result = _reduce(wide, segment, count, name, start if initial is None else initial)
    if reduce == "mean":
        size = offsets.diff(dim=-1).reshape(offsets.shape[:-1] + (count,) + (1,) * (data.dim() - offsets.dim()))
        empty = math.nan if initial is None else result
        result = torch.where(size == 0, empty, result / size.clamp(min=1))
    return result.to(data.dtype)


@decomposes(aten._embedding_bag_forward_only.default)
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor] | NotImplementedType:
    """Bags (bags, features) of rows of `weight`; an empty bag is 0.

    The other results are for the backward pass: the bag of each index, the size of each bag, and the index of each
    largest element. They have the shapes and values of PyTorch's kernels for the CPU, which do not compute all of them.
    """
    bags = offsets.shape[0] - include_last_offset
    pairs = indices.numel() * bags * (weight.shape[1] if BAGS[mode] == "max" else 1)
    if not pairs or pairs > LARGEST_PAIRS:
        return NotImplemented
    bag = _segment_of(torch.arange(indices.shape[0]), offsets[:bags])
    segment = torch.where(indices != padding_idx, bag, -1) if padding_idx >= 0 else bag
    rows = weight.index_select(0, indices).to(torch.float32)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.to(torch.float32).unsqueeze(-1)
    name, start = STARTS[BAGS[mode]]
    result = _reduce(rows, segment, bags, name, start)
    size = (segment == torch.arange(bags).unsqueeze(-1)).sum(-1)
    if BAGS[mode] == "mean":
        result = result / size.clamp(min=1).unsqueeze(-1)
    result = torch.where(size.unsqueeze(-1) > 0, result, 0).to(weight.dtype)
    sizes, bag = size.to(offsets.dtype), bag.to(offsets.dtype)
    if BAGS[mode] == "mean":
        return result, bag, sizes, sizes.clone()
    if BAGS[mode] == "max":
        return result, bag, sizes, _largest(rows, result, segment, indices).to(offsets.dtype)
    is_fast = padding_idx < 0 and weight.dtype != torch.float64 and weight.stride(1) == 1
    is_fast = is_fast and (per_sample_weights is None or per_sample_weights.stride(0) == 1)
    bag = offsets.new_zeros(0) if is_fast else bag
    return result, bag, torch.zeros_like(offsets), torch.zeros_like(offsets)


def _largest(rows: Tensor, largest: Tensor, segment: Tensor, indices: Tensor) -> Tensor:
    """For each element of `largest` (bags, features), the index of the first row of its bag that has it; or 0."""
    bags = torch.arange(largest.shape[0]).unsqueeze(-1)
    here = (segment == bags).unsqueeze(-1) & (rows == largest.unsqueeze(1))  # bags, positions, features
    place = here.to(torch.int32).argmax(1)
    return torch.where(here.any(1), indices[place], 0)
