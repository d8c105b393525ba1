"""StableHLO programs with complex numbers: each op that has a rule, compared with PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from foreign_programs import Program, check, i32, randn, run

C = "tensor<3x4xcomplex<f32>>"
X, Y = torch.complex(randn(3, 4), randn(4, 3).T), torch.complex(randn(1, 12).reshape(3, 4), randn(2, 6).reshape(3, 4))
ALONE = "replica_groups = dense<0> : tensor<1x1xi64>"
SUM = """({
^bb0(%p: tensor<complex<f32>>, %q: tensor<complex<f32>>):
  %s = stablehlo.add %p, %q : tensor<complex<f32>>
  stablehlo.return %s : tensor<complex<f32>>
})"""
GATHER = """{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
  index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}"""
IMAGES = "(tensor<1x1x3x4xcomplex<f32>>, tensor<1x1x2x2xcomplex<f32>>) -> tensor<1x1x2x3xcomplex<f32>>"
CONVOLVED = f"""
%p = stablehlo.reshape %a : ({C}) -> tensor<1x1x3x4xcomplex<f32>>
%k = stablehlo.slice %b [0:2, 0:2] : ({C}) -> tensor<2x2xcomplex<f32>>
%q = stablehlo.reshape %k : (tensor<2x2xcomplex<f32>>) -> tensor<1x1x2x2xcomplex<f32>>
%0 = stablehlo.convolution(%p, %q) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {{}}
  {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : {IMAGES}"""


def at(*values: int) -> tuple[torch.Tensor, ...]:
    return tuple(i32(*values))


def row(name: str, body: str, kind: str, expected: Callable[..., Any], *inputs: torch.Tensor) -> Any:
    """A program whose first arguments are X and Y. A `body` of one line ends before the result's type."""
    text = body if "\n" in body else f"%0 = stablehlo.{body}{kind}"
    return pytest.param(Program(name, text, f"%0 : {kind}", (X, Y, *inputs), expected), id=name)


def convolved(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.conv2d(x[None, None], y[None, None, :2, :2].clone())


PROGRAMS = [
    row("add", "add %a, %b : ", C, lambda x, y: x + y),
    row("subtract", "subtract %a, %b : ", C, lambda x, y: x - y),
    row("multiply", "multiply %a, %b : ", C, lambda x, y: x * y),
    row("divide", "divide %a, %b : ", C, lambda x, y: x / y),
    row("atan2", "atan2 %a, %b : ", C, lambda x, y: -1j * ((y + 1j * x) / (x * x + y * y).sqrt()).log()),
    row("negate", "negate %a : ", C, lambda x, y: -x),
    row("abs", f"abs %a : ({C}) -> ", "tensor<3x4xf32>", lambda x, y: x.abs()),
    row("real", f"real %a : ({C}) -> ", "tensor<3x4xf32>", lambda x, y: x.real),
    row("imag", f"imag %a : ({C}) -> ", "tensor<3x4xf32>", lambda x, y: x.imag),
    row("reverse", "reverse %a, dims = [1] : ", C, lambda x, y: x.flip(1)),
    row("transpose", f"transpose %a, dims = [1, 0] : ({C}) -> ", "tensor<4x3xcomplex<f32>>", lambda x, y: x.T),
    row("reshape", f"reshape %a : ({C}) -> ", "tensor<2x6xcomplex<f32>>", lambda x, y: x.reshape(2, 6)),
    row("slice", f"slice %a [1:3, 0:4:2] : ({C}) -> ", "tensor<2x2xcomplex<f32>>", lambda x, y: x[1:3, ::2]),
    row("concatenate", f"concatenate %a, %b, dim = 0 : ({C}, {C}) -> ", "tensor<6x4xcomplex<f32>>",
        lambda x, y: torch.cat([x, y])),
    row("broadcast_in_dim", f"broadcast_in_dim %a, dims = [1, 2] : ({C}) -> ", "tensor<2x3x4xcomplex<f32>>",
        lambda x, y: x.expand(2, 3, 4)),
    row("pad", f"""
%z = stablehlo.constant dense<(1.0, -2.0)> : tensor<complex<f32>>
%0 = stablehlo.pad %a, %z, low = [1, 0], high = [0, 2], interior = [0, 0] : ({C}, tensor<complex<f32>>)
  -> tensor<4x6xcomplex<f32>>""", "tensor<4x6xcomplex<f32>>",
        lambda x, y: F.pad(x - (1 - 2j), (0, 2, 1, 0)) + (1 - 2j)),
    row("select", f"""
%p = stablehlo.compare EQ, %a, %b : ({C}, {C}) -> tensor<3x4xi1>
%0 = stablehlo.select %p, %a, %b : tensor<3x4xi1>, {C}""", C, lambda x, y: y),
    row("optimization_barrier", "optimization_barrier %a : ", C, lambda x, y: x),
    row("gather", f"""
%0 = "stablehlo.gather"(%a, %c) {GATHER} : ({C}, tensor<2xi32>) -> tensor<2x4xcomplex<f32>>""",
        "tensor<2x4xcomplex<f32>>", lambda x, y, i: x[[2, 0]], i32(2, 0)),
    row("dynamic_slice", f"dynamic_slice %a, %c, %d, sizes = [2, 3] : ({C}, tensor<i32>, tensor<i32>) -> ",
        "tensor<2x3xcomplex<f32>>", lambda x, y, i, j: x[1:3, 1:4], *at(1, 1)),
    row("dynamic_update_slice", f"""
%u = stablehlo.slice %b [0:2, 0:2] : ({C}) -> tensor<2x2xcomplex<f32>>
%0 = stablehlo.dynamic_update_slice %a, %u, %c, %d
  : ({C}, tensor<2x2xcomplex<f32>>, tensor<i32>, tensor<i32>) -> {C}""", C,
        lambda x, y, i, j: x.index_put((torch.tensor([[1], [2]]), torch.tensor([[2, 3]])), y[:2, :2]), *at(1, 2)),
    row("all_gather", f"""
%0 = "stablehlo.all_gather"(%a) {{all_gather_dim = 1 : i64, {ALONE}}} : ({C}) -> {C}""", C, lambda x, y: x),
    row("all_to_all", f"""
%0 = "stablehlo.all_to_all"(%a) {{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 1 : i64,
  {ALONE}}} : ({C}) -> {C}""", C, lambda x, y: x),
    row("collective_broadcast", f"""
%0 = "stablehlo.collective_broadcast"(%a) {{{ALONE}}} : ({C}) -> {C}""", C, lambda x, y: x),
    row("collective_permute", f"""
%0 = "stablehlo.collective_permute"(%a) {{source_target_pairs = dense<0> : tensor<1x2xi64>}} : ({C}) -> {C}""", C,
        lambda x, y: x),
    row("dot_general", f"dot_general %a, %b, contracting_dims = [1] x [1] : ({C}, {C}) -> ", "tensor<3x3xcomplex<f32>>",
        lambda x, y: x @ y.T),
    row("convolution", CONVOLVED, "tensor<1x1x2x3xcomplex<f32>>", convolved),
    row("reduce", f"""
%z = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
%0 = "stablehlo.reduce"(%a, %z) {SUM} {{dimensions = array<i64: 0>}} : ({C}, tensor<complex<f32>>)
  -> tensor<4xcomplex<f32>>""", "tensor<4xcomplex<f32>>", lambda x, y: x.sum(0)),
    row("convert to float", f"""
%p = stablehlo.convert %a : ({C}) -> tensor<3x4xf32>
%0 = stablehlo.negate %p : tensor<3x4xf32>""", "tensor<3x4xf32>", lambda x, y: -x.real),
    row("convert from float", "convert %c : (tensor<3x4xf32>) -> ", C,
        lambda x, y, f: torch.complex(f, 0 * f), randn(3, 4)),
    row("convert to double", f"""
%p = stablehlo.convert %a : ({C}) -> tensor<3x4xcomplex<f64>>
%0 = stablehlo.convert %p : (tensor<3x4xcomplex<f64>>) -> {C}""", C, lambda x, y: x),
]  # fmt: skip


FUNCTIONS = {
    "cosine": torch.cos, "sine": torch.sin, "tan": torch.tan, "tanh": torch.tanh, "exponential": torch.exp,
    "exponential_minus_one": torch.expm1, "log": torch.log, "log_plus_one": torch.log1p, "logistic": torch.sigmoid,
    "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "sign": torch.sgn, "cbrt": lambda x: x ** (1 / 3),
}  # fmt: skip


def test_elementary_functions() -> None:
    """One program has all functions. The numbers have several sizes."""
    parts = [0.0, 1e-4, -0.3, 1.1, -2.5, 30.0]
    x = torch.tensor([complex(a, b) for a in parts for b in parts if a or b])
    y = x.roll(5) / 10
    own = f"tensor<{len(x)}xcomplex<f32>>"
    lines = [f"%{n} = stablehlo.{name} %a : {own}" for n, name in enumerate(FUNCTIONS)]
    lines += [f"%{len(lines)} = stablehlo.power %a, %b : {own}"]
    results = f"{', '.join(f'%{n}' for n in range(len(lines)))} : {', '.join([own] * len(lines))}"

    def expected(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        x, y = x.to(torch.complex128), y.to(torch.complex128)
        return [*(f(x) for f in FUNCTIONS.values()), x**y]

    got = run(Program("functions", "\n".join(lines), results, (x, y), expected))
    for name, result, wanted in zip([*FUNCTIONS, "power"], got, expected(x, y), strict=True):
        error = (torch.view_as_complex(result) - wanted).abs() / wanted.abs()
        assert error.max() < 1e-6, (name, x[error.argmax()], error.max())


@pytest.mark.parametrize(
    ("base", "exponent", "result"), [(0, 0, 1), (0, 2 + 1j, 0), (0, -1, complex(math.nan, math.nan))]
)
def test_powers_of_zero(base: complex, exponent: complex, result: complex) -> None:
    kind = "tensor<1xcomplex<f32>>"
    inputs = tuple(torch.tensor([v], dtype=torch.complex64) for v in (base, exponent))
    wanted = torch.tensor([result], dtype=torch.complex64)
    check(Program("power", f"%0 = stablehlo.power %a, %b : {kind}", f"%0 : {kind}", inputs, lambda x, y: wanted))


# The text of a constant: numbers, infinities and NaN as bits, one number for all elements, or bytes.
EXTREME = [1.5 - 2e-3j, complex(math.inf, -math.inf), complex(math.nan, 0)]
CONSTANTS = [
    ("f32", "[(1.5, -2.0e-3), (0x7F800000, 0xFF800000), (0x7FC00000, -0.0)]", EXTREME),
    ("f64", f"[(1.5, -2.0e-3), (0x7FF{'0' * 13}, 0xFFF{'0' * 13}), (0x7FF8{'0' * 12}, -0.0)]", EXTREME),
    ("f32", "(-1.0, 2.0)", [-1 + 2j] * 3),
    ("f64", "(0.25, -3.0)", [0.25 - 3j] * 3),
    ("f32", '"0x0000803F000000400000404000008040000000C00000003F"', [1 + 2j, 3 + 4j, -2 + 0.5j]),
    ("f64", f'"0x{"".join(f"{0:012}{bits}" for bits in ("F03F", "0040", "E0BF", "1040", "0000", "F0BF"))}"',
     [1 + 2j, -0.5 + 4j, -1j]),
]  # fmt: skip


@pytest.mark.parametrize(("element", "text", "numbers"), CONSTANTS)
def test_constant(element: str, text: str, numbers: list[complex]) -> None:
    kind = f"tensor<3xcomplex<{element}>>"
    body = f"%c = stablehlo.constant dense<{text}> : {kind}\n"
    body += f"%0 = stablehlo.convert %c : ({kind}) -> tensor<3xcomplex<f32>>"
    check(Program(text, body, "%0 : tensor<3xcomplex<f32>>", (), lambda: torch.tensor(numbers)))


EDGES = torch.tensor([0, 1, 1 + 2j, 3e30 + 4e30j, 3e-30j, -2 - 2j, complex(-0.0, 5)])
OTHERS = torch.tensor([0, 1, 1 - 2j, 3e30 + 4e30j, 0, 2 - 2j, 5j])


@pytest.mark.parametrize(
    ("op", "result", "expected"),
    [
        ("compare EQ, %a, %b", "i1", lambda x, y: (x == y).bfloat16()),
        ("compare NE, %a, %b", "i1", lambda x, y: (x != y).bfloat16()),
        ("abs %a", "f32", lambda x, y: x.abs()),
    ],
)
def test_numbers_with_zeros_and_of_any_size(op: str, result: str, expected: Callable[..., Any]) -> None:
    """The runtime returns booleans as bfloat16."""
    kind = "tensor<7xcomplex<f32>>"
    body = f"%0 = stablehlo.{op} : ({', '.join([kind] * op.count('%'))}) -> tensor<7x{result}>"
    check(Program(op, body, f"%0 : tensor<7x{result}>", (EDGES, OTHERS), expected))


@pytest.mark.parametrize("program", PROGRAMS)
def test_op(program: Program) -> None:
    check(program)
