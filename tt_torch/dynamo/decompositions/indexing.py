"""Reading and writing by index."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import decomposes, lengths

aten = torch.ops.aten


@decomposes(aten._unsafe_index_put.default, aten._unsafe_index_put.hacked_twin)
def unsafe_index_put(x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    return aten.index_put(x, indices, values, accumulate)


@decomposes(aten._unsafe_index.Tensor)
def unsafe_index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    return aten.index(x, indices)


@decomposes(aten.take.default)
def take(x: Tensor, index: Tensor) -> Tensor:
    return x.reshape(-1)[index]


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


@decomposes(aten.index_fill.int_Scalar)
def index_fill(x: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    dim, size = lengths(x, dim)
    hit = (torch.arange(size).unsqueeze(1) == index.reshape(1, -1)).any(1)
    return torch.where(hit.reshape([-1 if d == dim else 1 for d in range(x.dim())]), value, x)


@decomposes(aten.scatter.value)
def scatter_value(x: Tensor, dim: int, index: Tensor, value: float) -> Tensor:
    return x.scatter(dim, index, torch.full(index.shape, value, dtype=x.dtype))
