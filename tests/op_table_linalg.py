"""Rows of the op table: factorizations of matrices, and solvers that use them."""

from __future__ import annotations

from typing import Any

import torch
from op_rows import Maker, Row, f32, tensor

linalg = torch.linalg
SQUARE, BATCH, WIDE, TALL = (5, 5), (2, 4, 4), (3, 5), (6, 4)


def _definite(*shape: int) -> Maker:
    """Symmetric matrices whose eigenvalues are at least 1."""

    def make(dtype: torch.dtype) -> torch.Tensor:
        x = torch.randn(shape)
        return (x @ x.mT + torch.eye(shape[-1])).to(dtype)

    return make


def _triangle(*shape: int) -> Maker:
    return lambda dtype: linalg.cholesky(_definite(*shape)(dtype))


def _row(name: str, fn: Any, *inputs: Any) -> Row:
    return Row(name, fn, inputs, (f32,))


SINGULAR = tensor([[1.0, 2, 3], [2, 4, 6], [1, 0, 0]])
LINALG = [
    *(_row(f"lu_factor_ex {shape}", linalg.lu_factor_ex, shape) for shape in (BATCH, WIDE, TALL, (0, 3))),
    _row("lu_factor_ex singular", linalg.lu_factor_ex, SINGULAR),
    _row("lu", linalg.lu, TALL),
    _row("lu_unpack without pivots", lambda x: torch.lu_unpack(*linalg.lu_factor_ex(x)[:2], unpack_pivots=False), TALL),
    _row("lu_unpack of pivots alone", lambda x: torch.lu_unpack(*linalg.lu_factor_ex(x)[:2], unpack_data=False), TALL),
    _row("lu_solve", lambda x, b: linalg.lu_solve(*linalg.lu_factor_ex(x)[:2], b), BATCH, (2, 4, 3)),
    _row(
        "lu_solve adjoint", lambda x, b: linalg.lu_solve(*linalg.lu_factor_ex(x)[:2], b, adjoint=True), SQUARE, (5, 2)
    ),
    _row("lu_solve right", lambda x, b: linalg.lu_solve(*linalg.lu_factor_ex(x)[:2], b, left=False), SQUARE, (2, 5)),
    _row("det", linalg.det, BATCH),
    _row("det singular", linalg.det, SINGULAR),
    _row("slogdet", linalg.slogdet, BATCH),
    _row("inv_ex", linalg.inv_ex, BATCH),
    _row("solve_ex", linalg.solve_ex, _definite(*BATCH), (2, 4, 3)),
    _row("solve_ex of a vector", linalg.solve_ex, _definite(*SQUARE), (5,)),
    _row("solve_ex of vectors", linalg.solve_ex, _definite(*BATCH), (2, 4)),
    _row("solve_ex right", lambda a, b: linalg.solve_ex(a, b, left=False), _definite(*SQUARE), (2, 5)),
    _row("torch.cholesky upper", lambda x: torch.cholesky(x, upper=True), _definite(*BATCH)),
    _row("cholesky_ex", linalg.cholesky_ex, _definite(*BATCH)),
    _row("cholesky_ex upper", lambda x: linalg.cholesky_ex(x, upper=True), _definite(*SQUARE)),
    _row("cholesky_ex indefinite", lambda x: linalg.cholesky_ex(x).info, tensor([[1.0, 2], [2, 1]])),
    _row("cholesky_ex of a zero pivot", lambda x: linalg.cholesky_ex(x).info, tensor([[0.0, 1], [1, 0]])),
    _row("cholesky_solve", torch.cholesky_solve, (5, 2), _triangle(*SQUARE)),
    _row("cholesky_inverse", torch.cholesky_inverse, _triangle(*BATCH)),
    _row("triangular_solve", lambda b, a: torch.triangular_solve(b, a, upper=False), (5, 2), _triangle(*SQUARE)),
    _row("solve_triangular", lambda a, b: linalg.solve_triangular(a.mT, b, upper=True), _triangle(*BATCH), (4, 3)),
    _row(
        "solve_triangular right",
        lambda a, b: linalg.solve_triangular(a, b, upper=False, left=False),
        _triangle(4, 4),
        (3, 4),
    ),
    _row(
        "solve_triangular of ones",
        lambda a, b: linalg.solve_triangular(a / 4, b, upper=False, unitriangular=True),
        _triangle(4, 4),
        (4, 2),
    ),
    *(_row(f"qr {shape}", linalg.qr, shape) for shape in (BATCH, WIDE, TALL, (3, 0))),
    _row("qr complete", lambda x: linalg.qr(x, "complete"), TALL),
    _row("qr r", lambda x: linalg.qr(x, "r"), TALL),
    _row("geqrf", torch.geqrf, TALL),
    _row("ormqr", lambda x, y: torch.ormqr(*torch.geqrf(x), y, True, True), TALL, (6, 2)),
    _row("ormqr right", lambda x, y: torch.ormqr(*torch.geqrf(x), y, False), TALL, (2, 6)),
]
