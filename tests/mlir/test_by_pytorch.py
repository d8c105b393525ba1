"""StableHLO ops that are computed by the decompositions of PyTorch's ops, compared with PyTorch."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.driver.stablehlo import in_a_list
from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir.stablehlo.dtypes import NAMES


def kind(x: torch.Tensor) -> str:
    return "x".join([*map(str, x.shape), NAMES[x.dtype]])


def program(op: str, operands: list[torch.Tensor], result: torch.Tensor) -> str:
    """The text of a program with one op. `op` is the op on `%a` and `%b`, without its types."""
    arguments = ", ".join(f"%{name}: tensor<{kind(x)}>" for name, x in zip("ab", operands, strict=False))
    types = ", ".join(f"tensor<{kind(x)}>" for x in operands)
    into = f"tensor<{kind(result)}>"
    return f"func.func @main({arguments}) -> {into} {{\n%0 = {op} : ({types}) -> {into}\nreturn %0 : {into}\n}}"


def run(text: str, *inputs: torch.Tensor) -> Any:
    return tt_torch.compile_stablehlo(text, CompilerConfig(verify_ir=True))(*inputs)


# --- Fourier transforms

SHAPES = [
    ("FFT", (3, 8), 1, torch.complex64),
    ("FFT", (2, 3, 4, 5), 3, torch.complex64),
    ("FFT", (67,), 1, torch.complex128),
    ("IFFT", (144,), 1, torch.complex64),
    ("IFFT", (1, 7), 2, torch.complex64),
    ("RFFT", (1,), 1, torch.float32),
    ("RFFT", (2, 3, 7), 2, torch.float64),
    ("IRFFT", (3, 5), 1, torch.complex64),
    ("IRFFT", (2, 4, 3), 3, torch.complex64),
    ("FFT", (0, 4), 1, torch.complex64),
]


@pytest.mark.parametrize(("name", "shape", "count", "dtype"), SHAPES)
def test_fourier_transform(name: str, shape: tuple[int, ...], count: int, dtype: torch.dtype) -> None:
    """The imaginary part of the first element changes no real result."""
    x, dims = torch.randn(shape, dtype=dtype), list(range(-count, 0))
    lengths = [shape[d] for d in dims]
    if name == "IRFFT":
        lengths[-1] = 2 * lengths[-1] - 1
        expected = torch.fft.irfftn(x, lengths, dims)
    else:
        transform = {"FFT": torch.fft.fftn, "IFFT": torch.fft.ifftn, "RFFT": torch.fft.rfftn}[name]
        expected = transform(x, dim=dims) if x.numel() else x
    got = run(program(f"stablehlo.fft %a, type = {name}, length = {lengths}", [x], expected), x)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def test_a_fourier_transform_of_even_length() -> None:
    x = torch.randn(2, 4, dtype=torch.complex64)
    expected = torch.fft.irfft(x, 6)
    torch.testing.assert_close(run(program("stablehlo.fft %a, type = IRFFT, length = [6]", [x], expected), x), expected)


@pytest.mark.parametrize("length", [1451, 1 << 22])
def test_lengths_with_large_matrices_are_computed_on_the_host(length: int) -> None:
    x = torch.randn(length, dtype=torch.complex64)
    with pytest.warns(HostFallbackWarning, match="fft"):
        got = run(program(f"stablehlo.fft %a, type = FFT, length = [{length}]", [x], x), x)
    torch.testing.assert_close(got, torch.fft.fft(x))


def test_other_transforms_of_the_host() -> None:
    x = torch.randn(3, 2902)
    with pytest.warns(HostFallbackWarning, match="fft"):
        got = run(program("stablehlo.fft %a, type = RFFT, length = [2902]", [x], torch.fft.rfft(x)), x)
        back = run(program("stablehlo.fft %a, type = IRFFT, length = [2902]", [got], x), got)
    torch.testing.assert_close(got, torch.fft.rfft(x))
    torch.testing.assert_close(back, x)


# --- Cholesky's factorization


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((2, 3, 5, 5), torch.float32), ((4, 4), torch.float64), ((1, 1), torch.bfloat16), ((0, 3, 3), torch.bfloat16)],
)
def test_cholesky(shape: tuple[int, ...], dtype: torch.dtype, lower: bool) -> None:
    """The other half of the matrix is not read."""
    x = torch.randn(shape)
    x = (x @ x.mT + 3 * torch.eye(shape[-1])).to(dtype)
    expected = torch.linalg.cholesky(x.double(), upper=not lower).to(dtype)
    given = torch.where(torch.ones(shape).tril() > 0 if lower else torch.ones(shape).triu() > 0, x, torch.nan)
    text = program(f'"stablehlo.cholesky"(%a) {{lower = {str(lower).lower()}}}', [x], x)
    tolerance = 1e-2 if dtype == torch.bfloat16 else 1e-5
    torch.testing.assert_close(run(text, given), expected, rtol=tolerance, atol=tolerance)


def test_the_factor_of_a_matrix_that_is_not_positive_definite_is_nan() -> None:
    x = torch.stack([torch.eye(3), torch.diag(torch.tensor([1.0, -1, 1])), torch.ones(3, 3), torch.eye(3) * torch.nan])
    got = run(program('"stablehlo.cholesky"(%a) {lower = true}', [x], x), x)
    assert torch.equal(got[0], torch.eye(3)) and got[1:].isnan().all()


@pytest.mark.parametrize("x", [torch.rand(33, 33), torch.rand(3, 3) * (1 + 2j), torch.rand(33, 33).bfloat16()])
def test_the_host_factorizes_large_and_complex_matrices(x: torch.Tensor) -> None:
    x = torch.stack([x @ x.mH + 40 * torch.eye(x.shape[-1], dtype=x.dtype), -torch.eye(x.shape[-1], dtype=x.dtype)])
    with pytest.warns(HostFallbackWarning, match="cholesky"):
        got = run(program('"stablehlo.cholesky"(%a) {lower = true}', [x], x), x)
    wide = x[0] if x.is_complex() else x[0].float()
    torch.testing.assert_close(got[0], torch.linalg.cholesky(wide).to(x.dtype))
    assert got[1].isnan().all()


@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize("left", [True, False])
def test_the_host_solves_large_and_complex_triangular_systems(left: bool, transpose: str) -> None:
    a, b = torch.randn(2, 4, 4, dtype=torch.complex64) + 4 * torch.eye(4), torch.randn(2, 4, 4, dtype=torch.complex64)
    text = program(
        f'"stablehlo.triangular_solve"(%a, %b) {{left_side = {str(left).lower()}, lower = true, unit_diagonal = false, '
        f"transpose_a = #stablehlo<transpose {transpose}>}}", [a, b], b,
    )  # fmt: skip
    with pytest.warns(HostFallbackWarning, match="triangular_solve"):
        x = run(text, a, b)
    matrix = a.tril()
    matrix = {"NO_TRANSPOSE": matrix, "TRANSPOSE": matrix.mT, "ADJOINT": matrix.mH}[transpose]
    torch.testing.assert_close(matrix @ x if left else x @ matrix, b)


def test_a_loop_with_too_many_steps_of_a_factorization_is_refused() -> None:
    text = """func.func @main(%a: tensor<12x12xf32>) -> tensor<12x12xf32> {
      %z = stablehlo.constant dense<0> : tensor<i32>
      %n = stablehlo.constant dense<900> : tensor<i32>
      %o = stablehlo.constant dense<1> : tensor<i32>
      %0:2 = stablehlo.while(%i = %z, %x = %a) : tensor<i32>, tensor<12x12xf32>
      cond {
        %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %y = stablehlo.cholesky %x, lower = true : tensor<12x12xf32>
        %j = stablehlo.add %i, %o : tensor<i32>
        stablehlo.return %j, %y : tensor<i32>, tensor<12x12xf32>
      }
      return %0#1 : tensor<12x12xf32>
    }"""
    with pytest.raises(UnsupportedOpError, match="expected a program of at most 100,000 ops"):
        tt_torch.compile_stablehlo(text)


# --- triangular systems

FORMS = [*product(["true", "false"], ["true", "false"], ["true", "false"], ["NO_TRANSPOSE", "TRANSPOSE"])]


def solved(left: str, lower: str, unit: str, transpose: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a = a.tril() if lower == "true" else a.triu()
    if unit == "true":
        a = a - torch.diag_embed(a.diagonal(0, -2, -1)) + torch.eye(a.shape[-1])
    a = a if transpose == "NO_TRANSPOSE" else a.mT
    return torch.linalg.solve(a, b, left=left == "true")


def test_triangular_systems() -> None:
    """One program has all forms. The triangle that is not read is not zero."""
    a, b = torch.randn(2, 3, 3) + 4 * torch.eye(3), torch.randn(2, 3, 3)
    forms, own = [*FORMS, ("true", "true", "false", "ADJOINT")], f"tensor<{kind(a)}>"
    lines = [
        f'%{n} = "stablehlo.triangular_solve"(%a, %b) {{left_side = {left}, lower = {lower}, unit_diagonal = {unit}, '
        f"transpose_a = #stablehlo<transpose {transpose}>}} : ({own}, {own}) -> {own}"
        for n, (left, lower, unit, transpose) in enumerate(forms)
    ]
    names, types = ", ".join(f"%{n}" for n in range(len(forms))), ", ".join([own] * len(forms))
    body = "\n".join([*lines, f"return {names} : {types}"])
    results = in_a_list(run(f"func.func @main(%a: {own}, %b: {own}) -> ({types}) {{\n{body}\n}}", a, b))
    for form, got in zip(forms, results, strict=True):
        torch.testing.assert_close(got, solved(*form, a, b), rtol=1e-5, atol=1e-5, msg=lambda m, f=form: f"{f}: {m}")


@pytest.mark.parametrize(
    ("a", "b", "left"),
    [((5, 5), (5, 2), "true"), ((1, 1), (3, 1), "false"), ((0, 2, 2), (0, 2, 1), "true"), ((2, 2), (2, 0), "true")],
)
def test_triangular_systems_of_other_sizes(a: tuple[int, ...], b: tuple[int, ...], left: str) -> None:
    matrix, right = torch.randn(a) + 4 * torch.eye(a[-1]), torch.randn(b)
    op = (
        f'"stablehlo.triangular_solve"(%a, %b) {{left_side = {left}, lower = true, unit_diagonal = false, '
        "transpose_a = #stablehlo<transpose NO_TRANSPOSE>}"
    )
    expected = solved(left, "true", "false", "NO_TRANSPOSE", matrix, right)
    got = run(program(op, [matrix, right], right), matrix, right)
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
