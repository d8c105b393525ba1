"""Products with a constant matrix along each of the last dimensions. On the device, averages, interpolation and their
gradients are such products.

In a matrix product, an infinity or NaN reaches all results of its row, because 0 * inf is NaN. `sums` keeps it local.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor


def product(x: Tensor, dim: int, matrix: Tensor) -> Tensor:
    """`x` with dimension `dim` replaced, by a matrix of (new size, old size)."""
    before, after = x.shape[:dim], x.shape[dim + 1 :]
    rows = x.reshape(math.prod(before), x.shape[dim], math.prod(after))
    matrix = matrix.to(x.dtype)
    result = rows.squeeze(2) @ matrix.t() if math.prod(after) == 1 else torch.matmul(matrix, rows)
    return result.reshape([*before, matrix.shape[0], *after])


_MOST_TERMS = 16  # of a sum of gathered slices; a matrix product is faster than more of them


def sums(x: Tensor, dim: int, matrix: Tensor, terms: int) -> Tensor:
    """The product for a matrix that has at most `terms` numbers other than zero in a row. Only these are multiplied."""
    terms = min(terms, matrix.shape[1])
    if terms > _MOST_TERMS:
        return product(x, dim, matrix)
    places = torch.topk((matrix != 0).to(torch.float32), terms, 1)[1]

    def term(i: int) -> Tensor:
        factor = matrix.gather(1, places[:, i : i + 1]).reshape([-1] + [1] * (x.dim() - dim - 1)).to(x.dtype)
        return torch.where(factor != 0, x.index_select(dim, places[:, i]) * factor, 0.0)

    return reduce(torch.add, map(term, range(terms)))


def apply_sums(x: Tensor, matrices: Sequence[Tensor], terms: Sequence[int]) -> Tensor:
    """As `apply`, by `sums` with the number of terms for each of the matrices."""
    first, result = x.dim() - len(matrices), x.to(torch.promote_types(x.dtype, torch.float32))
    for i, (matrix, count) in enumerate(zip(matrices, terms, strict=True)):
        result = sums(result, first + i, matrix, count)
    return result.to(x.dtype)


def apply(x: Tensor, matrices: Sequence[Tensor]) -> Tensor:
    """Multiplies each of the last dimensions of `x` by a matrix. Computes in float32 and returns the dtype of `x`."""
    first, result = x.dim() - len(matrices), x.to(torch.promote_types(x.dtype, torch.float32))
    for i, matrix in enumerate(matrices):
        result = product(result, first + i, matrix)
    return result.to(x.dtype)
