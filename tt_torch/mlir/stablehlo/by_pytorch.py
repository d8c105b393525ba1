"""Ops that become several plain ops by the decompositions that PyTorch's ops have: Fourier transforms, triangular
systems, Cholesky's factorization, and functions of complex numbers.

For each form of such an op, a function of PyTorch with the same meaning is traced, decomposed and lowered to StableHLO.
Copies of the resulting ops replace the op.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import torch
from torch import Tensor
from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.context import unsupported
from tt_torch.mlir.functions import block, main
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.build import make, zeros
from tt_torch.mlir.stablehlo.complex_parts import is_complex, joined_parts, split_pairs
from tt_torch.mlir.types import Function, Value

Compute = Callable[..., Tensor]


def compute_by_pytorch(function: Function, most: int) -> None:
    """Replaces the ops of a function that are in `RULES`. Raises UnsupportedOpError for a form without decomposition,
    and if the function would have more than `most` ops."""
    ops = [op.operation for op in block(function).operations]
    known: dict[str, ir.Module] = {}
    size, found = len(ops), [(op, _form(op), rule) for op in ops if (rule := _rule(op))]
    if not found:
        return
    from tt_torch.mlir.stablehlo.traced import lowered  # importing PyTorch's tracer takes seconds

    for op, form, rule in found:
        if form and form not in known:
            with op.location:
                known[form] = lowered(op, rule(op))
        size += len(block(main(known[form])).operations) if form else 0
        if size > most:
            raise unsupported(op, "stablehlo-to-ttir", f"a program of at most {most:,} ops")
    for op, form, _ in found:
        with ir.InsertionPoint(op), op.location:
            new = _replacement(op, known[form]) if form else zeros(op.results[0].type)  # sums of nothing
        op.results[0].replace_all_uses_with(new)
        op.erase()


def _rule(op: ir.Operation) -> Callable[[ir.Operation], Compute] | None:
    if op.name in OF_COMPLEX and is_complex(op.results[0]):
        return lambda op: OF_COMPLEX[op.name]
    return RULES.get(op.name)


def _form(op: ir.Operation) -> str:
    """The op without the names of its operands; "" if an operand has no elements."""
    empty = 0 in [size for v in op.operands for size in v.type.shape]
    return "" if empty else re.sub(r"%[\w#]+", "%", op.get_asm(print_generic_op_form=True))


def _replacement(op: ir.Operation, module: ir.Module) -> Value:
    operands = [joined_parts(v) if is_complex(v) else v for v in op.operands]
    (result,) = _copied(module, operands)
    kind = op.results[0].type
    return make("complex", kind, *split_pairs(result)) if is_complex(op.results[0]) else result


def _copied(module: ir.Module, operands: list[Value]) -> list[Value]:
    """Copies the ops of `main` to the current insertion point, with the current location. Returns the results."""
    body = block(main(module))
    values = dict(zip(body.arguments, operands, strict=False))
    *ops, last = (op.operation for op in body.operations)
    for op in ops:
        copy = op.clone().operation
        copy.location = ir.Location.current
        for number, operand in enumerate(op.operands):
            copy.operands[number] = values[operand]
        values.update(zip(op.results, copy.results, strict=True))
    return [values[v] for v in last.operands]


# --- the meaning of each op, in PyTorch

TRANSFORMS = {"IRFFT": torch.fft.irfftn, "RFFT": torch.fft.rfftn, "IFFT": torch.fft.ifftn, "FFT": torch.fft.fftn}


def _fft(op: ir.Operation) -> Compute:
    """The transform of a batch of one: PyTorch multiplies a vector and a matrix in place, which has no lowering."""
    kind, lengths = str(op.attributes["fft_type"]), attrs.ints(op, "fft_length")
    dims = list(range(-len(lengths), 0))
    name = next(name for name in TRANSFORMS if name in kind)  # the longest name first: FFT is in all of them
    sizes = lengths if name == "IRFFT" else None
    return lambda x: TRANSFORMS[name](x.unsqueeze(0), sizes, dims).squeeze(0)


def _cholesky(op: ir.Operation) -> Compute:
    """The factor; NaN for a matrix that is not positive definite, as XLA gives."""
    lower = ods.attr(op, "lower")

    def compute(a: Tensor) -> Tensor:
        factor, failed = torch.linalg.cholesky_ex(a, upper=not lower)
        return torch.where(failed[..., None, None] == 0, factor, torch.nan)

    return compute


def _triangular_solve(op: ir.Operation) -> Compute:
    """A transposed matrix has its triangle on the other side."""
    left, lower, unit = (ods.attr(op, name) for name in ("left_side", "lower", "unit_diagonal"))
    transposed = "NO_TRANSPOSE" not in str(op.attributes["transpose_a"])

    def compute(a: Tensor, b: Tensor) -> Tensor:
        matrix = a.mT if transposed else a
        return torch.linalg.solve_triangular(matrix, b, upper=lower == transposed, left=left, unitriangular=unit)

    return compute


RULES: dict[str, Callable[[ir.Operation], Compute]] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.fft": _fft,
    "stablehlo.triangular_solve": _triangular_solve,
}

# Functions of complex numbers. The device has ops for those of real numbers.
OF_COMPLEX: dict[str, Compute] = {
    "stablehlo.cbrt": lambda x: torch.pow(x, 1 / 3),
    "stablehlo.cosine": torch.cos,
    "stablehlo.exponential_minus_one": torch.expm1,
    "stablehlo.logistic": torch.sigmoid,
    "stablehlo.power": torch.pow,
    "stablehlo.rsqrt": torch.rsqrt,
    "stablehlo.sign": torch.sgn,
    "stablehlo.sine": torch.sin,
    "stablehlo.tan": torch.tan,
    "stablehlo.tanh": torch.tanh,
}
