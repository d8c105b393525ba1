"""Distances, counts and places in sorted tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import decomposes

aten = torch.ops.aten

LONG = 25  # rows from which on PyTorch takes Euclidean distances from a product of matrices


@decomposes(aten._cdist_forward.default)
def cdist(x: Tensor, y: Tensor, p: float, mode: int | None) -> Tensor:
    rows = max(x.shape[-2], y.shape[-2])
    if p != 2 or mode == 2 or (mode != 1 and rows <= LONG):
        return torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)
    return aten._euclidean_dist(x, y)


@decomposes(aten.histc.default)
def histc(x: Tensor, bins: int = 100, low: float = 0, high: float = 0) -> Any:
    """Ones added up at each element's bin; what lies outside adds nothing. Equal bounds mean those of the elements."""
    x = x.reshape(-1)
    if not x.numel():
        return x.new_zeros(bins)
    least, most = (x.min(), x.max()) if low == high else (x.new_full((), low), x.new_full((), high))
    single = least == most
    least, most = torch.where(single, least - 1, least), torch.where(single, most + 1, most)
    place = torch.floor((x - least) / (most - least) * bins).clamp(0, bins - 1).to(torch.int64)
    inside = ((x >= least) & (x <= most)).to(x.dtype)
    return x.new_zeros(bins).scatter_add(0, place, inside)


@decomposes(aten.searchsorted.Tensor)
def searchsorted(
    edges: Tensor,
    values: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """How many edges are smaller; with `right`, or equal."""
    edges = edges if sorter is None else edges.gather(-1, sorter)
    if edges.dim() > 1:
        edges = edges.unsqueeze(-2)
    beyond = edges <= values.unsqueeze(-1) if right or side == "right" else edges < values.unsqueeze(-1)
    return beyond.sum(-1).to(torch.int32 if out_int32 else torch.int64)


@decomposes(aten.searchsorted.Scalar)
def searchsorted_scalar(edges: Tensor, value: float, **options: Any) -> Tensor:
    return searchsorted(edges, torch.full((), value, dtype=edges.dtype), **options)
