"""StableHLO that torch-mlir does not write but others do, run and compared with plain PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.flatbuffer.from_ttnn import translate
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import make_context
from tt_torch.runtime import Binary, Executable


@dataclass(frozen=True)
class Form:
    """A program's text without its frame: arguments `%a, %b, ...` of the inputs' types, the result `%0`."""

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
]


def run(form: Form) -> list[torch.Tensor]:
    names = "abcdefgh"
    kinds = ["x".join([*map(str, t.shape), {torch.float32: "f32", torch.int32: "i32"}[t.dtype]]) for t in form.inputs]
    arguments = ", ".join(f"%{n}: tensor<{kind}>" for n, kind in zip(names, kinds, strict=False))
    result = f"tensor<{form.result}>"
    lines = [*form.body.splitlines()[:-1], f"%0 = {form.body.splitlines()[-1]}{result}", f"return %0 : {result}"]
    config = CompilerConfig(verify_ir=True)
    with make_context():
        text = f"func.func @main({arguments}) -> {result} {{\n" + "\n".join(lines) + "\n}"
        module = ir.Module.parse(text)
        for steps in (pipeline.TO_TTIR, pipeline.TO_TTNN):
            pipeline.run_steps(module, steps, config, pipeline.Timings())
        return Executable(Binary(translate(module, config)))(list(form.inputs))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_form(form: Form) -> None:
    (got,) = run(form)
    torch.testing.assert_close(got, form.expected(*form.inputs), rtol=1e-5, atol=1e-5)
