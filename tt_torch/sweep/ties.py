"""Positions of equal values: PyTorch does not define which of them topk and kthvalue return."""

from __future__ import annotations

import torch
from torch.return_types import kthvalue, topk

from tt_torch.dynamo.types import Result


def same_but_for_ties(result: Result, golden: Result, x: object) -> bool:
    """Whether the values equal eager's, and the positions are distinct positions of these values in `x`."""
    if not isinstance(golden, kthvalue | topk) or type(result) is not type(golden) or not isinstance(x, torch.Tensor):
        return False
    if not torch.equal(result.values, golden.values) or result.indices.dtype != golden.indices.dtype:
        return False
    dims = [d for d in range(x.dim()) if _found(x, d, golden)]
    return any(_found(x, d, result) for d in dims)


def _found(x: torch.Tensor, dim: int, result: Result) -> bool:
    """Whether each position along this dimension has its value, and no position appears twice."""
    values, indices = result.values, result.indices
    if values.dim() < x.dim():
        values, indices = values.unsqueeze(dim), indices.unsqueeze(dim)
    others = [n for d, n in enumerate(x.shape) if d != dim]
    if [n for d, n in enumerate(values.shape) if d != dim] != others:
        return False
    if not bool(((indices >= 0) & (indices < x.shape[dim])).all()):
        return False
    ordered = indices.sort(dim).values
    once = (ordered.diff(dim=dim) > 0).all()
    return bool(once) and torch.equal(x.gather(dim, indices), values)
