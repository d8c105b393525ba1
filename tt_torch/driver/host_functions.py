"""Ops of StableHLO programs that the host computes, as functions of PyTorch. This imports no compiler.

A function takes the operands and the options of a HostCall, and returns all results. The results of LAPACK's functions
are in the order in which JAX names them. The last of them is `info`: 0 for a matrix for which the function succeeded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import prod

import torch
from torch import Tensor

from tt_torch.driver.host_integers import INTEGER_FUNCTIONS
from tt_torch.driver.host_onnx import onnx_model
from tt_torch.driver.host_windows import select_and_scatter
from tt_torch.flow import HostCall

Results = tuple[Tensor, ...]
FUNCTIONS: dict[str, Callable[..., Results]] = {
    **INTEGER_FUNCTIONS,
    "onnx_model": onnx_model,
    "stablehlo.select_and_scatter": select_and_scatter,
}
OF_ALL_TYPES = ("onnx_model", "stablehlo.bitcast_convert")  # functions that have forms for bfloat16 and float16


def require_known(call: HostCall) -> None:
    """Raises ValueError or TypeError for an op that is not here, or that takes other operands or options."""
    if call.op not in FUNCTIONS:
        raise ValueError(f"{call.op!r} is no op of the host")
    inspect.signature(FUNCTIONS[call.op]).bind(*call.inputs, **call.options)


def _function(compute: Callable[..., Results]) -> Callable[..., Results]:
    FUNCTIONS[compute.__name__.removeprefix("_")] = compute
    return compute


@_function
def _lu(a: Tensor) -> Results:
    """Both factors in one matrix, and the pivots, which count from 1."""
    return tuple(torch.linalg.lu_factor_ex(a))


@_function
def _qr(a: Tensor) -> Results:
    """R and the Householder vectors in one matrix, and the factors of the vectors. There is no `info`."""
    return torch.geqrf(a)


@_function
def _householder_product(a: Tensor, factors: Tensor) -> Results:
    return (torch.linalg.householder_product(a, factors),)


@_function
def _cholesky(a: Tensor, upper: bool) -> Results:
    """The other triangle of the matrix stays as it is, as in LAPACK."""
    factor, info = torch.linalg.cholesky_ex(a, upper=upper)
    return (factor + (a.tril(-1) if upper else a.triu(1)), info)


@_function
def _cholesky_or_nan(a: Tensor, upper: bool) -> Results:
    """The factor alone, which is NaN for a matrix that is not positive definite."""
    factor, info = torch.linalg.cholesky_ex(a, upper=upper)
    return (torch.where((info == 0)[..., None, None], factor, torch.nan),)


@_function
def _triangular_solve(a: Tensor, b: Tensor, left: bool, upper: bool, unit: bool, transpose: str) -> Results:
    """`transpose` is "N", "T" or "C". A transposed matrix has its triangle on the other side."""
    if transpose != "N":
        a, upper = a.mT if transpose == "T" else a.mH, not upper
    return (torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit),)


@_function
def _eigh(a: Tensor, upper: bool) -> Results:
    """The eigenvectors, and the eigenvalues in ascending order."""

    def one(matrix: Tensor) -> Results:
        values, vectors = torch.linalg.eigh(matrix, UPLO="U" if upper else "L")
        return vectors, values

    return _by_matrix(one, a)


@_function
def _svd(a: Tensor, full: bool) -> Results:
    """The matrix, which LAPACK overwrites, the singular values, and both matrices of vectors."""

    def one(matrix: Tensor) -> Results:
        left, values, right = torch.linalg.svd(matrix, full_matrices=full)
        return matrix, values, left, right

    return _by_matrix(one, a)


@_function
def _eig(a: Tensor) -> Results:
    """The eigenvalues, as real and imaginary parts if the matrix is real, the left and the right eigenvectors.

    The right eigenvectors are the columns of a matrix. The left ones are the columns of the conjugate transpose of its
    inverse, with length 1. They are NaN for a matrix that lacks eigenvectors. As in LAPACK, the largest element of a
    complex vector has no imaginary part.
    """

    def one(matrix: Tensor) -> Results:
        values, right = torch.linalg.eig(matrix)
        inverse, failed = torch.linalg.inv_ex(right)
        left = torch.where(failed == 0, inverse.mH, torch.nan)
        left = left / torch.linalg.vector_norm(left, dim=0)
        if left.numel():
            largest = left.gather(0, left.abs().argmax(0, keepdim=True))
            left = left * (largest.conj() / largest.abs())
        parts = (values,) if a.is_complex() else (values.real, values.imag)
        return (*parts, left, right)

    return _by_matrix(one, a)


@_function
def _tridiagonal_solve(lower: Tensor, diagonal: Tensor, upper: Tensor, b: Tensor) -> Results:
    """The diagonals, which LAPACK overwrites, and the solution. The outer diagonals have n elements, or n - 1."""
    n = diagonal.shape[-1]
    matrix = torch.diag_embed(diagonal)
    if n > 1:
        matrix = matrix + torch.diag_embed(lower[..., -(n - 1) :], -1) + torch.diag_embed(upper[..., : n - 1], 1)
    solution, info = torch.linalg.solve_ex(matrix, b)
    return lower, diagonal, upper, solution, info


@_function
def _fft(x: Tensor, kind: str, lengths: list[int]) -> Results:
    """The transform over the last dimensions. `lengths` are their lengths: before an RFFT, and after an IRFFT."""
    dims = list(range(-len(lengths), 0))
    functions = {"FFT": torch.fft.fftn, "IFFT": torch.fft.ifftn, "RFFT": torch.fft.rfftn, "IRFFT": torch.fft.irfftn}
    return (functions[kind](x, lengths, dims),)


def _by_matrix(compute: Callable[[Tensor], Results], a: Tensor) -> Results:
    """The results for each matrix of a batch, and `info`. All results are NaN for a matrix with infinities or NaN, and
    for a matrix for which LAPACK fails."""
    batch, found, failed = a.shape[:-2], [], []
    example = compute(torch.eye(*a.shape[-2:], dtype=a.dtype))  # the forms of the results
    no_numbers = tuple(torch.full_like(x, torch.nan) for x in example)
    for matrix in a.reshape(prod(batch), *a.shape[-2:]):
        try:
            results = compute(matrix) if matrix.isfinite().all() else no_numbers
        except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
            results = no_numbers
        found.append(results)
        failed.append(int(results is no_numbers))
    stacked = [
        torch.stack([each[i] for each in found]) if found else example[i].new_empty(0, *example[i].shape)
        for i in range(len(example))
    ]
    info = torch.tensor(failed, dtype=torch.int32)
    return (*(x.reshape(*batch, *x.shape[1:]) for x in stacked), info.reshape(batch))
