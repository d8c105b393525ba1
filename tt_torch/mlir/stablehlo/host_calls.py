"""Which ops of StableHLO the host computes: factorizations of matrices, powers of integers, what is too large for the
device, and integers of 64 bits, which `wide_places.py` has marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isqrt, prod
from typing import Any

from torch_mlir import ir

from tt_torch.flow import HostCall
from tt_torch.mlir import ods
from tt_torch.mlir.context import describe
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.complex_parts import is_complex
from tt_torch.mlir.stablehlo.dtypes import DTYPES
from tt_torch.mlir.stablehlo.integer_rows import MARK, NO_FORM, function_of, is_marked, lacks_form
from tt_torch.mlir.types import Value

Found = tuple[str, dict[str, Any]]  # a name in `driver.host_functions`, and its options
LARGEST_TRIDIAGONAL = 4096  # rows of a system; PyTorch solves it as a whole matrix

TOO_LARGE = "it is too large for the device, or of complex numbers"


def host_call(op: ir.Operation, inputs: Sequence[int]) -> HostCall | None:
    """The step of a flow for an op that only the host can compute; None for other ops. `inputs` are value numbers."""
    found, reason = None, NO_FORM
    name = str(op.attributes["call_target_name"]).strip('"') if op.name == "stablehlo.custom_call" else ""
    if name.startswith("lapack_") and name.endswith("_ffi") and name[7:8] in "sdcz":
        found = _lapack(op, name[8:-4])
    elif is_marked(op):
        found, reason = function_of(op), str(op.attributes[MARK]).strip('"')
    elif lacks_form(op):
        found = function_of(op)
    elif op.name in LARGE:
        found, reason = LARGE[op.name](op), TOO_LARGE
    if not found:
        return None
    pairs = [i for i, x in enumerate(op.operands) if is_complex(x)]
    called, options = found
    where = describe(op.location)
    size = sum(_bytes(x.type) for x in (*op.operands, *op.results))
    return HostCall(called, options, list(inputs), len(op.results), pairs, where, reason, size)


def _bytes(kind: ir.RankedTensorType) -> int:
    """The size of a value; 0 if its shape is open."""
    return (prod(kind.shape) if kind.has_static_shape else 0) * DTYPES[str(kind.element_type)].itemsize


def _lapack(op: ir.Operation, name: str) -> Found | None:
    """JAX's functions of LAPACK. `name` is without its first letter, which stands for the type."""
    config = op.attributes.get("mhlo.backend_config", ir.DictAttr.get({}, op.context))
    letters = {each.name: chr(ir.IntegerAttr(each.attr).value) for each in config if str(each.attr).endswith("ui8")}
    if name == "gtsv" and op.operands[1].type.shape[-1] > LARGEST_TRIDIAGONAL:
        return None
    return LAPACK[name](letters) if name in LAPACK else None


# For each function of LAPACK, a function that gives the host's call from the op's options. Their values are letters.
LAPACK: dict[str, Callable[[dict[str, str]], Found]] = {
    "getrf": lambda x: ("lu", {}),
    "geqrf": lambda x: ("qr", {}),
    "orgqr": lambda x: ("householder_product", {}),
    "ungqr": lambda x: ("householder_product", {}),
    "potrf": lambda x: ("cholesky", {"upper": x["uplo"] == "U"}),
    "trsm": lambda x: ("triangular_solve", {
        "left": x["side"] == "L", "upper": x["uplo"] == "U", "unit": x["diag"] == "U", "transpose": x["trans_x"],
    }),
    "syevd": lambda x: ("eigh", {"upper": x["uplo"] == "U"}),
    "heevd": lambda x: ("eigh", {"upper": x["uplo"] == "U"}),
    "gesdd": lambda x: ("svd", {"full": x["mode"] == "A"}),
    "geev": lambda x: ("eig", {}),
    "gtsv": lambda x: ("tridiagonal_solve", {}),
}  # fmt: skip


def _is_for_host(matrix: Value) -> bool:
    """Whether the decompositions for the device leave a matrix to the host."""
    from tt_torch.dynamo.decompositions.linalg import LARGEST  # the import takes seconds

    return is_complex(matrix) or matrix.type.shape[-1] > LARGEST["Cholesky"]


def _cholesky(op: ir.Operation) -> Found | None:
    return ("cholesky_or_nan", {"upper": not ods.attr(op, "lower")}) if _is_for_host(op.operands[0]) else None


def _triangular_solve(op: ir.Operation) -> Found | None:
    if not _is_for_host(op.operands[0]):
        return None
    left, lower, unit = (ods.attr(op, name) for name in ("left_side", "lower", "unit_diagonal"))
    kind = str(op.attributes["transpose_a"])
    transpose = "N" if "NO_TRANSPOSE" in kind else "C" if "ADJOINT" in kind else "T"
    return "triangular_solve", {"left": left, "upper": not lower, "unit": unit, "transpose": transpose}


def _fft(op: ir.Operation) -> Found | None:
    from tt_torch.mlir.stablehlo.traced import LARGEST_MATRIX  # the import takes seconds

    lengths = attrs.ints(op, "fft_length")
    if all(length <= LARGEST_MATRIX and _largest_factor(length) <= isqrt(LARGEST_MATRIX) for length in lengths):
        return None
    kind = str(op.attributes["fft_type"])
    return "fft", {"kind": next(name for name in ("IRFFT", "RFFT", "IFFT", "FFT") if name in kind), "lengths": lengths}


def _largest_factor(number: int) -> int:
    """The largest prime factor; 1 for 1 and 0."""
    factor, largest = 2, 1
    while factor * factor <= number:
        while number % factor == 0:
            number, largest = number // factor, factor
        factor += 1
    return max(largest, number)


LARGE: dict[str, Callable[[ir.Operation], Found | None]] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.fft": _fft,
    "stablehlo.triangular_solve": _triangular_solve,
}
