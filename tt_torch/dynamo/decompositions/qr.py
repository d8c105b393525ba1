"""QR factorizations of matrices by reflections, as in LAPACK."""

from __future__ import annotations

import torch
from torch import Tensor

from tt_torch.dynamo.decompositions.linalg import column_of, columns_from, row_of, rows_from, unrolled

aten = torch.ops.aten


def _size(column: Tensor) -> Tensor:
    """The Euclidean norm. The squares of a column of 1e20 would be infinite, and those of 1e-25 zero."""
    if not column.shape[-2]:
        return column.sum(-2, keepdim=True)
    largest = column.abs().amax(-2, keepdim=True)
    parts = column / torch.where(largest == 0, 1, largest)
    return largest * torch.sqrt((parts * parts).sum(-2, keepdim=True))


def _reflector(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """LAPACK's larfg for a column: the new first element (the others become 0), tau, and the vector below its 1."""
    alpha, tail = row_of(x, 0), rows_from(x, 1)
    size = _size(tail)
    none = size == 0
    beta = torch.where(alpha < 0, 1.0, -1.0) * torch.hypot(alpha, size)
    tau = torch.where(none, 0, (beta - alpha) / torch.where(none, 1, beta))
    return torch.where(none, alpha, beta), tau, tail / torch.where(none, 1, alpha - beta)


@unrolled(aten.geqrf.default, "QR")
def geqrf(a: Tensor) -> tuple[Tensor, Tensor]:
    rest, frames, taus = a, [], []
    steps = min(a.shape[-2:])
    for _ in range(steps):
        beta, tau, vector = _reflector(column_of(rest, 0))
        full = torch.cat([torch.ones_like(beta), vector], -2)
        others = columns_from(rest, 1)
        if others.shape[-1]:
            others = others - tau * full * (full.mT @ others)
        frames.append((torch.cat([beta, vector], -2), row_of(others, 0)))
        taus.append(tau.squeeze(-1))
        rest = rows_from(others, 1)
    if not steps:
        return a.clone(), a.new_empty((*a.shape[:-2], 0))
    for column, row in reversed(frames):
        rest = torch.cat([column, torch.cat([row, rest], -2)], -1)
    return rest, torch.cat(taus, -1)


def _reflect(packed: Tensor, tau: Tensor, x: Tensor, k: int) -> Tensor:
    """Applies reflection k of a packed factorization to the rows from k on, which x is. LAPACK does not apply it to the
    rows above them: these keep their values beside an infinite vector, and it leaves out what changes nothing."""
    below, factor = rows_from(column_of(packed, k), k + 1), tau.narrow(-1, k, 1).unsqueeze(-1)
    vector = torch.cat([torch.ones_like(factor), below], -2)
    return torch.where(factor == 0, x, x - factor * vector * (vector.mT @ x))


@unrolled(aten.linalg_householder_product.default, "QR")
def householder_product(packed: Tensor, tau: Tensor, columns: int | None = None) -> Tensor:
    """The first columns of the product of the reflections, as many as `packed` has if `columns` does not say it. It
    grows by one row and one column with each reflection, from the last to the first one."""
    steps, (rows, width) = tau.shape[-1], packed.shape[-2:]
    width = width if columns is None else columns
    x = torch.eye(rows - steps, width - steps, dtype=packed.dtype).expand(*packed.shape[:-2], -1, -1)
    for k in reversed(range(steps)):
        below, factor = rows_from(column_of(packed, k), k + 1), tau.narrow(-1, k, 1).unsqueeze(-1)
        first = torch.cat([1 - factor, -factor * below], -2)
        rest = [_reflect(packed, tau, torch.constant_pad_nd(x, [0, 0, 1, 0]), k)] if x.shape[-1] else []
        x = torch.cat([first, *rest], -1)
    return x if steps else x.clone()


@unrolled(aten.ormqr.default, "QR")
def ormqr(packed: Tensor, tau: Tensor, x: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """x Q is the transpose of Q' x'."""
    if not left:
        return ormqr(packed, tau, x.mT, True, not transpose).mT
    steps = range(tau.shape[-1]) if x.numel() else range(0)
    for k in steps if transpose else reversed(steps):
        x = torch.cat([x.narrow(-2, 0, k), _reflect(packed, tau, rows_from(x, k), k)], -2)
    return x if steps else x.clone()


@unrolled(aten.linalg_qr.default, "QR")
def qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    rows, columns = a.shape[-2:]
    count = rows if mode == "complete" else min(rows, columns)
    packed, tau = geqrf(a)
    r = packed.narrow(-2, 0, count).triu()
    if mode == "r":
        return a.new_empty([0]), r
    return householder_product(packed, tau, count), r
