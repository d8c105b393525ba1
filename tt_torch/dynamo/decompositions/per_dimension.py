"""Products with a constant matrix along each of the last dimensions. On the device, interpolation and its gradient are
such products. In such a product, an infinity or NaN reaches all results of its row, because 0 * inf is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


def product(x: Tensor, dim: int, matrix: Tensor) -> Tensor:
    """`x` multiplied along dimension `dim` by a matrix of (new size, old size)."""
    before, after = x.shape[:dim], x.shape[dim + 1 :]
    rows = x.reshape(math.prod(before), x.shape[dim], math.prod(after))
    matrix = matrix.to(x.dtype)
    result = rows.squeeze(2) @ matrix.t() if math.prod(after) == 1 else torch.matmul(matrix, rows)
    return result.reshape([*before, matrix.shape[0], *after])


def apply(x: Tensor, matrices: Sequence[Tensor]) -> Tensor:
    """Multiplies each of the last dimensions of `x` by a matrix. Computes in float32 and returns the dtype of `x`."""
    first, result = x.dim() - len(matrices), x.to(torch.promote_types(x.dtype, torch.float32))
    for i, matrix in enumerate(matrices):
        result = product(result, first + i, matrix)
    return result.to(x.dtype)
