"""Factorizations of matrices, and solutions that use them. They follow LAPACK, so signs and pivots are eager's.

The device has no loops, so one step per row or column is unrolled. Each step is vectorized over the rest of the
matrices. Only matrices up to LARGEST are decomposed here. Complex matrices are left to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from types import NotImplementedType

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.registry import decomposes
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.torch_private.ops import OpOverload

aten = torch.ops.aten
# By the factorization that an op makes or uses: the largest shorter side of a matrix for which the op is decomposed.
# These decompositions have at most 600 device ops and take about a second to compile, as `python -m benchmarks linalg`
# measures.
LARGEST = {"Cholesky": 32, "LU": 16, "QR": 10}
UNROLLED: set[OpOverload] = set()  # the ops


def unrolled(op: OpOverload, factors: str, matrix: int = 0) -> Callable[[Function], Function]:
    """Registers a function for real matrices up to `LARGEST[factors]`. Argument number `matrix` has the matrices."""

    def register(function: Function) -> Function:
        @wraps(function)
        def of_small(*args: Tensor, **kwargs: Argument) -> Result:
            x = args[matrix]
            large = x.is_complex() or min(x.shape[-2:]) > LARGEST[factors]
            return NotImplemented if large else function(*args, **kwargs)

        decomposes(op)(of_small)
        UNROLLED.add(op)
        return function

    return register


def _no_errors(x: Tensor) -> Tensor:
    return torch.zeros(x.shape[:-2], dtype=torch.int32)


def _first(found: list[Tensor], x: Tensor) -> Tensor:
    """LAPACK's info: the number of the first step at which something was found, counted from 1, or 0."""
    info = _no_errors(x)
    for step in range(len(found) - 1, -1, -1):
        info = torch.where(found[step].reshape(info.shape), step + 1, info)
    return info.to(torch.int32)


def row_of(x: Tensor, k: int) -> Tensor:
    return x.narrow(-2, k, 1)


def column_of(x: Tensor, k: int) -> Tensor:
    return x.narrow(-1, k, 1)


def corner_of(x: Tensor, k: int) -> Tensor:
    """Element (k, k) as a matrix of one."""
    return column_of(row_of(x, k), k)


def rows_from(x: Tensor, k: int) -> Tensor:
    """All rows from k on."""
    return x.narrow(-2, k, x.shape[-2] - k)


def columns_from(x: Tensor, k: int) -> Tensor:
    """All columns from k on."""
    return x.narrow(-1, k, x.shape[-1] - k)


# --- triangular systems ---------------------------------------------------------------------------


def _solve_lower(a: Tensor, b: Tensor, unit: bool) -> Tensor:
    """Forward substitution: multiples of each row that is found are subtracted from the rows below. Only the lower
    triangle of `a` is read."""
    size, rows = a.shape[-1], []
    b = b.expand(torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:])
    for k in range(size):
        found = row_of(b, 0) if unit else row_of(b, 0) / corner_of(a, k)
        rows.append(found)
        if k + 1 < size:
            b = rows_from(b, 1) - rows_from(column_of(a, k), k + 1) * found
    return torch.cat(rows, -2)


def _solve(a: Tensor, b: Tensor, upper: bool, left: bool = True, unit: bool = False) -> Tensor:
    """X of A X = B or X A = B. An upper system is solved as a lower one in reversed order."""
    if not left:
        return _solve(a.mT, b.mT, not upper, True, unit).mT
    if not a.shape[-1] or not b.numel():
        return b.expand(torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:]).clone()
    if upper:
        return _solve_lower(a.flip(-2, -1), b.flip(-2), unit).flip(-2)
    return _solve_lower(a, b, unit)


@unrolled(aten.linalg_solve_triangular.default, "Cholesky")
def solve_triangular(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    return _solve(a, b, upper, left, unitriangular)


@unrolled(aten.triangular_solve.default, "Cholesky", matrix=1)
def triangular_solve(
    b: Tensor, a: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    matrix = a.mT if transpose else a
    copied = a.expand(torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + a.shape[-2:]).clone()
    return _solve(matrix, b, upper != transpose, True, unitriangular), copied


# --- Cholesky -------------------------------------------------------------------------------------


def _cholesky(a: Tensor, upper: bool) -> tuple[Tensor, Tensor]:
    """The factor, computed from one half of the matrix, and LAPACK's info."""
    rest, columns, found = (a.mT if upper else a), [], []
    size = a.shape[-1]
    for k in range(size):
        pivot = corner_of(rest, 0)
        found.append(~(pivot > 0))
        column = column_of(rest, 0) / torch.sqrt(pivot)
        columns.append(torch.constant_pad_nd(column, [0, 0, k, 0]) if k else column)
        if k + 1 < size:
            under = rows_from(column, 1)
            rest = columns_from(rows_from(rest, 1), 1) - under * under.mT
    if not a.numel():
        return a.clone(), _no_errors(a)
    lower = torch.cat(columns, -1)
    return (lower.mT if upper else lower), _first(found, a)


@unrolled(aten.linalg_cholesky_ex.default, "Cholesky")
def cholesky_ex(
    a: Tensor, *, upper: bool = False, check_errors: bool = False
) -> tuple[Tensor, Tensor] | NotImplementedType:
    return NotImplemented if check_errors else _cholesky(a, upper)


@unrolled(aten.cholesky.default, "Cholesky")
def cholesky(a: Tensor, upper: bool = False) -> Tensor:
    factor, info = _cholesky(a, upper)
    aten._linalg_check_errors(info, "cholesky", is_matrix=a.dim() == 2)
    return factor


@unrolled(aten.cholesky_solve.default, "Cholesky", matrix=1)
def cholesky_solve(b: Tensor, a: Tensor, upper: bool = False) -> Tensor:
    lower = a.mT if upper else a
    return _solve(lower.mT, _solve(lower, b, False), True)


@unrolled(aten.cholesky_inverse.default, "Cholesky")
def cholesky_inverse(a: Tensor, upper: bool = False) -> Tensor:
    """W' W for the inverse W of the lower factor. Row k of W has k + 1 elements that are not zero by its structure. The
    zeros behind them are not computed with: a NaN or an infinity of the factor would reach more elements than in
    LAPACK."""
    lower, size = (a.mT if upper else a), a.shape[-1]
    info = _first([corner_of(a, k) == 0 for k in range(size)], a)
    aten._linalg_check_errors(info, "cholesky_inverse", is_matrix=a.dim() == 2)
    rest, products = a.new_zeros((*a.shape[:-2], size, 0)), []
    for k in range(size):
        row = torch.cat([-row_of(rest, 0), torch.ones_like(corner_of(a, k))], -1) / corner_of(lower, k)
        unknown = [0, size - k - 1]
        products.append(torch.constant_pad_nd(row.mT * row, unknown * 2))
        rest = torch.constant_pad_nd(rows_from(rest, 1), [0, 1]) + rows_from(column_of(lower, k), k + 1) * row
    return torch.stack(products).sum(0) if size else a.clone()


# --- LU -------------------------------------------------------------------------------------------


def _swap(x: Tensor, k: int, other: Tensor) -> Tensor:
    """Exchanges the rows k and `other`. `other` (..., 1, 1) has one row number per matrix."""
    place = torch.arange(x.shape[-2]).unsqueeze(-1)
    hit = place == other
    row = torch.where(hit, x, -torch.inf).amax(-2, keepdim=True)  # a sum would begin with 0.0, and lose a -0.0
    return torch.where(place == k, row, torch.where(hit, row_of(x, k), x))


def _eliminate(x: Tensor, steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """Gauss's elimination with partial pivoting in the first `steps` columns. The columns behind them are transformed
    in the same way. Returns the packed factors, the pivots (int32, counted from 1), and info."""
    rows, columns = torch.arange(x.shape[-2]).unsqueeze(-1), torch.arange(x.shape[-1])
    pivots, found = [], []
    for k in range(steps):
        sizes = rows_from(column_of(x, k), k).abs()
        # LAPACK begins with the first element and compares, and no comparison with NaN is true.
        nan = torch.where(rows[: sizes.shape[-2]] == 0, torch.inf, -1)
        largest = torch.where(sizes == sizes, sizes, nan).argmax(-2, keepdim=True) + k
        x = _swap(x, k, largest)
        pivot, column = corner_of(x, k), column_of(x, k)
        zero = pivot == 0
        factor = column / torch.where(zero, 1, pivot)
        new = torch.where(columns == k, factor, x - factor * row_of(x, k))
        x = torch.where((rows > k) & (columns >= k), new, x)
        pivots.append(largest)
        found.append(zero)
    if not pivots:
        return x.clone(), torch.zeros((*x.shape[:-2], 0), dtype=torch.int32), _no_errors(x)
    return x, torch.cat(pivots, -2).squeeze(-1).to(torch.int32) + 1, _first(found, x)


@unrolled(aten.linalg_lu_factor_ex.default, "LU")
def lu_factor_ex(
    a: Tensor, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor] | NotImplementedType:
    return _eliminate(a, min(a.shape[-2:])) if pivot and not check_errors else NotImplemented


def _exchange(x: Tensor, pivots: Tensor, steps: Iterable[int]) -> Tensor:
    for k in steps:
        x = _swap(x, k, pivots.narrow(-1, k, 1).unsqueeze(-1) - 1)
    return x


@unrolled(aten.lu_unpack.default, "LU")
def lu_unpack(
    lu: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    rows, columns = lu.shape[-2:]
    count = min(rows, columns)
    none = lu.new_empty([0])
    p = lower = upper = none
    if unpack_pivots:
        eye = torch.eye(rows, dtype=lu.dtype).expand(*lu.shape[:-2], rows, rows)
        p = _exchange(eye, pivots, reversed(range(count))) if lu.numel() else eye.clone()
    if unpack_data:
        lower = torch.where(torch.eye(rows, count, dtype=torch.bool), 1, lu.narrow(-1, 0, count).tril(-1))
        upper = lu.narrow(-2, 0, count).triu()
    return p, lower, upper


@unrolled(aten.linalg_lu.default, "LU")
def lu(a: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor] | NotImplementedType:
    if not pivot:
        return NotImplemented
    packed, pivots, _ = _eliminate(a, min(a.shape[-2:]))
    return lu_unpack(packed, pivots)


@unrolled(aten.linalg_lu_solve.default, "LU")
def lu_solve(lu: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    if not left:
        return lu_solve(lu, pivots, b.mT, adjoint=not adjoint).mT
    if not b.numel():
        return b.expand(torch.broadcast_shapes(lu.shape[:-2], b.shape[:-2]) + b.shape[-2:]).clone()
    steps = range(lu.shape[-1])
    if adjoint:
        return _exchange(_solve(lu.mT, _solve(lu.mT, b, False), True, unit=True), pivots, reversed(steps))
    return _solve(lu, _solve(lu, _exchange(b, pivots, steps), False, unit=True), True)


def _as_eager(a: Tensor) -> Tensor:
    """The matrix as eager factorizes it. LAPACK needs columns, so eager transposes a contiguous matrix."""
    return a.mT if a.is_contiguous() else a


def _sign(packed: Tensor, pivots: Tensor) -> Tensor:
    """The sign of the permutation. Each exchange of two different rows changes it."""
    moved = pivots != torch.arange(1, pivots.shape[-1] + 1)
    return 1 - 2 * (moved.sum(-1) % 2).to(packed.dtype)


@unrolled(aten._linalg_det.default, "LU")
def det(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    packed, pivots, _ = _eliminate(_as_eager(a), a.shape[-1])
    return _sign(packed, pivots) * packed.diagonal(0, -2, -1).prod(-1), packed, pivots


@unrolled(aten._linalg_slogdet.default, "LU")
def slogdet(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    packed, pivots, _ = _eliminate(_as_eager(a), a.shape[-1])
    diagonal = packed.diagonal(0, -2, -1)
    sign = _sign(packed, pivots) * torch.sign(diagonal).prod(-1)
    return sign, torch.log(diagonal.abs()).sum(-1), packed, pivots


def _solve_by_elimination(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """X of A X = B, the factors and pivots of A, and info: the elimination of [A B] leaves a triangular system."""
    size = a.shape[-1]
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = a.expand(batch + a.shape[-2:]), b.expand(batch + b.shape[-2:])
    both, pivots, info = _eliminate(torch.cat([a, b], -1), size)
    packed = both.narrow(-1, 0, size)
    return _solve(packed, columns_from(both, size), True), packed, pivots, info


@unrolled(aten.linalg_inv_ex.default, "LU")
def inv_ex(a: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor] | NotImplementedType:
    if check_errors:
        return NotImplemented
    inverse, _, _, info = _solve_by_elimination(a, torch.eye(a.shape[-1], dtype=a.dtype).expand(a.shape))
    return inverse, info


@unrolled(aten._linalg_solve_ex.default, "LU")
def solve_ex(
    a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor] | NotImplementedType:
    vectors = b.dim() == 1 or b.shape == a.shape[:-1]
    right = b.unsqueeze(-1) if vectors else b
    if check_errors or a.shape[:-2] != right.shape[:-2]:  # the factors would be those of an expanded matrix
        return NotImplemented
    if left:
        x, packed, pivots, info = _solve_by_elimination(a, right)
    else:
        packed, pivots, info = _eliminate(a, a.shape[-1])
        x = lu_solve(packed, pivots, right, left=False)
    return x.squeeze(-1) if vectors else x, packed, pivots, info
