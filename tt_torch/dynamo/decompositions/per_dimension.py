"""Products with a constant matrix along each of the last dimensions: what averages, interpolates, or gives the gradient
of either is a matrix product on the device."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def apply(x: Tensor, matrices: Sequence[Tensor]) -> Tensor:
    """`x` with its last dimensions replaced one by one, by a matrix of (new size, old size) each. Computes in float32,
    gives the type of `x`."""
    first, result = x.dim() - len(matrices), x.to(torch.promote_types(x.dtype, torch.float32))
    for i, matrix in enumerate(matrices):
        before, after = result.shape[: first + i], result.shape[first + i + 1 :]
        rows = result.reshape(math.prod(before), result.shape[first + i], math.prod(after))
        matrix = matrix.to(result.dtype)
        product = rows.squeeze(2) @ matrix.t() if math.prod(after) == 1 else torch.matmul(matrix, rows)
        result = product.reshape([*before, matrix.shape[0], *after])
    return result.to(x.dtype)


def apply_transposed(grad: Tensor, matrices: Sequence[Tensor]) -> Tensor:
    """The gradient of `apply` for its first operand."""
    return apply(grad, [m.t() for m in matrices])


def one_hot(places: Tensor, size: int) -> Tensor:
    """(..., size) with a one at each place; places outside count for the first or last."""
    return (places.clamp(0, size - 1).unsqueeze(-1) == torch.arange(size)).to(torch.float32)
