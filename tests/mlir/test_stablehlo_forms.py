"""Forms of StableHLO that other tools write, but torch-mlir does not. They are run and compared with plain PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import make_context
from tt_torch.mlir.ttnn.to_binary import translate
from tt_torch.runtime import Binary, Executable
from tt_torch.wire.calls import op_histogram
from tt_torch.wire.decode import decode


@dataclass(frozen=True)
class Form:
    """The body of a program, with the arguments `%a, %b, ...` of the inputs' types and the result `%0`.

    The body ends before the type of the result, which is added to it.
    """

    name: str
    body: str
    result: str
    inputs: tuple[torch.Tensor, ...]
    expected: Callable[..., Any]


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def at(*values: int) -> tuple[torch.Tensor, ...]:
    return tuple(torch.tensor(v, dtype=torch.int32) for v in values)


def updated(x: torch.Tensor, u: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[i : i + 2, j : j + 3] = u
    return x


def batch_norm_gradients(x: torch.Tensor, scale: torch.Tensor, mean: Any, var: Any, grad: torch.Tensor) -> Any:
    offset = torch.zeros(4)
    _, backward = torch.func.vjp(lambda *v: F.batch_norm(v[0], None, None, v[1], v[2], True, 0, 0.1), x, scale, offset)
    return backward(grad)


IMAGE, GRAD = randn(2, 4, 5, 6), randn(2, 4, 5, 6) + 1
VARIANCE, MEAN = torch.var_mean(IMAGE, (0, 2, 3), correction=0)
NORM = "{epsilon = 0.1 : f32, feature_index = 1 : i64} : (tensor<2x4x5x6xf32>, tensor<4xf32>, tensor<4xf32>"
PAIR = "^bb0(%x: tensor<f32>, %y: tensor<f32>):"
CONV = "stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = "
COUNTS = "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x4x5x6xf32>, tensor<3x4x2x3xf32>) -> "
FORMS = [
    Form(
        "dynamic_slice",
        "stablehlo.dynamic_slice %a, %b, %c, sizes = [2, 3] : (tensor<5x6xf32>, tensor<i32>, tensor<i32>) -> ",
        "2x3xf32",
        (randn(5, 6), *at(1, 2)),
        lambda x, i, j: x[i : i + 2, j : j + 3],
    ),
    Form(
        "select of CHLO beside another op of CHLO",
        "%s = chlo.broadcast_select %a, %b, %c : (tensor<5x1xi1>, tensor<6xf32>, tensor<f32>) -> tensor<5x6xf32>\n"
        "chlo.sinh %s : tensor<5x6xf32> -> ",
        "5x6xf32",
        (randn(5, 1) > 0, randn(6), randn()),
        lambda c, x, y: torch.where(c, x, y).sinh(),
    ),
    Form(
        "dynamic_slice over the end",
        "stablehlo.dynamic_slice %a, %b, %c, sizes = [2, 3] : (tensor<5x6xf32>, tensor<i32>, tensor<i32>) -> ",
        "2x3xf32",
        (randn(5, 6), *at(9, -2)),
        lambda x, i, j: x[3:5, :3],
    ),
    Form(
        "dynamic_update_slice of two dimensions",
        "stablehlo.dynamic_update_slice %a, %b, %c, %d"
        " : (tensor<5x6xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> ",
        "5x6xf32",
        (randn(5, 6), randn(2, 3), *at(2, 1)),
        updated,
    ),
    Form(
        "convolution dilated on the left",
        f"{CONV}{{pad = [[1, 0], [-1, 2]], lhs_dilate = [2, 3], reverse = [true, true]}} {COUNTS}",
        "2x3x9x15xf32",
        (randn(2, 4, 5, 6), randn(3, 4, 2, 3)),
        lambda x, w: F.pad(F.conv_transpose2d(x, w.transpose(0, 1), stride=(2, 3)), (-3, 0, 0, -1)),
    ),
    Form(
        "convolution of batch groups",
        f"{CONV}{{}} {COUNTS}".replace("batch_group_count = 1", "batch_group_count = 2").replace("3x4x2x3", "6x4x2x3"),
        "1x6x4x4xf32",
        (randn(2, 4, 5, 6), randn(6, 4, 2, 3)),
        lambda x, w: torch.cat([F.conv2d(x[:1], w[:3]), F.conv2d(x[1:], w[3:])], 1),
    ),
    Form(
        "convolution of groups without spatial dimensions",
        "stablehlo.convolution(%a, %b) dim_numbers = [b, f]x[i, o]->[f, b], window = {} {batch_group_count = 1 : i64,"
        " feature_group_count = 2 : i64} : (tensor<3x4xf32>, tensor<2x6xf32>) -> ",
        "6x3xf32",
        (randn(3, 4), randn(2, 6)),
        lambda x, w: torch.cat([x[:, :2] @ w[:, :3], x[:, 2:] @ w[:, 3:]], 1).T,
    ),
]


FORMS += [
    Form(
        "batch_norm_training",
        f'"stablehlo.batch_norm_training"(%a, %b, %c) {NORM}) -> ',
        "2x4x5x6xf32 4xf32 4xf32",
        (IMAGE, randn(4), randn(4) + 1),
        lambda x, w, o: (F.batch_norm(x, None, None, w, o, True, 0, 0.1), MEAN, VARIANCE),
    ),
    Form(
        "batch_norm_grad",
        f'"stablehlo.batch_norm_grad"(%a, %b, %c, %d, %e) {NORM}, tensor<4xf32>, tensor<2x4x5x6xf32>) -> ',
        "2x4x5x6xf32 4xf32 4xf32",
        (IMAGE, randn(4), MEAN, VARIANCE, GRAD),
        batch_norm_gradients,
    ),
    Form(
        "round away from zero",
        "stablehlo.round_nearest_afz %a : ",
        "6xf32",
        (torch.tensor([0.5, -0.5, 2.5, -2.4, 0.49999997, 8388609.0]),),
        lambda x: torch.tensor([1.0, -1.0, 3.0, -2.0, 0.0, 8388609.0]),
    ),
    Form(
        "bitcast",
        "stablehlo.bitcast_convert %a : (tensor<3xf32>) -> ",
        "3xi32",
        (torch.tensor([1.0, -0.0, 3.14]),),
        lambda x: x.view(torch.int32),
    ),
    Form(
        "barrier and size",
        "%s = stablehlo.get_dimension_size %a, dim = 1 : (tensor<5x6xf32>) -> tensor<i32>\n"
        "%p, %q = stablehlo.optimization_barrier %a, %s : tensor<5x6xf32>, tensor<i32>\n"
        "%f = stablehlo.convert %q : (tensor<i32>) -> tensor<f32>\n"
        "%g = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<5x6xf32>\n"
        "stablehlo.add %p, %g : ",
        "5x6xf32",
        (randn(5, 6),),
        lambda x: x + 6,
    ),
    Form(
        "select_and_scatter",
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f'%0 = "stablehlo.select_and_scatter"(%a, %b, %z) ({{\n{PAIR}\n'
        "%m = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>\n"
        f"stablehlo.return %m : tensor<i1>\n}}, {{\n{PAIR}\n"
        "%n = stablehlo.add %x, %y : tensor<f32>\nstablehlo.return %n : tensor<f32>\n}) "
        "{window_dimensions = array<i64: 1, 1, 3, 2>, window_strides = array<i64: 1, 1, 2, 2>, "
        "padding = dense<[[0, 0], [0, 0], [1, 1], [0, 0]]> : tensor<4x2xi64>} "
        ": (tensor<2x4x5x6xf32>, tensor<2x4x3x3xf32>, tensor<f32>) -> ",
        "2x4x5x6xf32",
        (IMAGE, randn(2, 4, 3, 3)),
        lambda x, g: torch.func.vjp(lambda v: F.max_pool2d(v, (3, 2), 2, (1, 0)), x)[1](g)[0],
    ),
]


def run(form: Form) -> list[torch.Tensor]:
    names = "abcdefgh"
    elements = {torch.float32: "f32", torch.int32: "i32", torch.bool: "i1"}
    kinds = ["x".join([*map(str, t.shape), elements[t.dtype]]) for t in form.inputs]
    arguments = ", ".join(f"%{n}: tensor<{kind}>" for n, kind in zip(names, kinds, strict=False))
    results = [f"tensor<{kind}>" for kind in form.result.split()]
    types = f"({', '.join(results)})" if len(results) > 1 else results[0]
    values = [f"%0#{i}" for i in range(len(results))] if len(results) > 1 else ["%0"]
    name = "%0" if len(results) == 1 else f"%0:{len(results)}"
    body = form.body if "%0 =" in form.body else _named(form.body, name)
    lines = [f"{body}{types}", f"return {', '.join(values)} : {', '.join(results)}"]
    config = CompilerConfig(verify_ir=True)
    with make_context():
        text = f"func.func @main({arguments}) -> {types} {{\n" + "\n".join(lines) + "\n}"
        module = ir.Module.parse(text)
        for steps in (pipeline.TO_TTIR, pipeline.TO_TTNN):
            pipeline.run_steps(module, steps, config, pipeline.Timings())
        return Executable(Binary(translate(module, config)))(list(form.inputs))


def _named(body: str, name: str) -> str:
    """Names the results of the op in the last line."""
    *before, last = body.splitlines()
    return "\n".join([*before, f"{name} = {last}"])


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_form(form: Form) -> None:
    expected = form.expected(*form.inputs)
    expected = [expected] if isinstance(expected, torch.Tensor) else expected
    for got, want in zip(run(form), expected, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


# The resource has four bytes for the alignment, and then the elements.
RESOURCE = """module {
  func.func @main(%a: tensor<3xi32>) -> tensor<3xi32> {
    %b = arith.constant dense_resource<numbers> : tensor<3xi32>
    %0 = stablehlo.add %a, %b : tensor<3xi32>
    return %0 : tensor<3xi32>
  }
}
{-# dialect_resources: { builtin: { numbers: "0x040000000500000006000000FFFFFFFF" } } #-}"""


def test_a_constant_in_a_resource() -> None:
    with make_context():
        binary = compile_module(ir.Module.parse(RESOURCE), CompilerConfig())
    (result,) = Executable(Binary(binary))([torch.tensor([1, 2, 3], dtype=torch.int32)])
    assert result.tolist() == [6, 8, 2]


SCALARS = "%c = stablehlo.constant dense<2.0> : tensor<f32>\n%d = stablehlo.constant dense<5.0> : tensor<f32>\n"
SIZES = "%n = stablehlo.constant dense<[64, 96]> : tensor<2xi64>\n"
RNG = ", %n, distribution = {} : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> "


@pytest.mark.parametrize(
    ("body", "mean", "deviation"),
    [
        (SCALARS + SIZES + "stablehlo.rng %c, %d" + RNG.format("UNIFORM"), 3.5, 3 / 12**0.5),
        (SIZES + "stablehlo.rng %a, %b" + RNG.format("UNIFORM"), 3.5, 3 / 12**0.5),
        (SCALARS + SIZES + "stablehlo.rng %a, %d" + RNG.format("UNIFORM"), 3.5, 3 / 12**0.5),
        (SCALARS + SIZES + "stablehlo.rng %c, %b" + RNG.format("UNIFORM"), 3.5, 3 / 12**0.5),
        (SCALARS + SIZES + "stablehlo.rng %c, %d" + RNG.format("NORMAL"), 2.0, 5.0),
    ],
    ids=["uniform", "uniform between inputs", "uniform from an input", "uniform up to an input", "normal"],
)
def test_random_numbers(body: str, mean: float, deviation: float) -> None:
    """Mean and deviation of 6,144 numbers are within four standard errors, and each run draws other numbers."""
    form = Form("rng", body, "64x96xf32", (torch.tensor(2.0), torch.tensor(5.0)), torch.empty)
    (first,), (second,) = run(form), run(form)
    assert not torch.equal(first, second)
    error = deviation / first.numel() ** 0.5
    assert abs(first.mean().item() - mean) < 4 * error
    assert abs(first.std().item() - deviation) < 4 * error


def test_random_integers() -> None:
    """Exactly the integers of the range are drawn, and all about equally often."""
    scalars = "%c = stablehlo.constant dense<-3> : tensor<i32>\n%d = stablehlo.constant dense<5> : tensor<i32>\n"
    kinds = "(tensor<i32>, tensor<i32>, tensor<2xi64>) -> "
    body = f"{scalars}{SIZES}stablehlo.rng %c, %d, %n, distribution = UNIFORM : {kinds}"
    (numbers,) = run(Form("rng", body, "64x96xi32", (torch.tensor(2.0),), torch.empty))
    values, counts = numbers.unique(return_counts=True)
    assert values.tolist() == list(range(-3, 5))
    assert (counts - 768).abs().max() < 5 * 768**0.5


def test_a_rounding_that_keeps_the_exponent_needs_no_limits() -> None:
    def ops(form: str) -> int:
        body = f"%0 = stablehlo.reduce_precision %x, format = {form} : tensor<4xf32> return %0 : tensor<4xf32>"
        with make_context():
            module = ir.Module.parse(f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {body} }}")
            return op_histogram(decode(compile_module(module, CompilerConfig()))).total()

    assert ops("e8m5") < ops("e7m5") - 3
