"""Whole programs of StableHLO as text: functions that compile and run them, and compare them with plain PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.mlir.context import context_to_compile
from tt_torch.runtime import Binary, Executable

CALL = "stablehlo.custom_call @{}({}) {{{} = {{{}}}}} : "
TT = "mhlo.frontend_attributes"

KINDS = {torch.float32: "f32", torch.int32: "i32", torch.uint32: "ui32", torch.complex64: "complex<f32>"}


@dataclass(frozen=True)
class Program:
    """The body of `main` takes `%a, %b, ...` of the inputs' types; `results` has the form `values : types`."""

    name: str
    body: str
    results: str
    inputs: tuple[torch.Tensor, ...]
    expected: Callable[..., Any]
    functions: str = ""


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def i32(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def run(program: Program) -> list[torch.Tensor]:
    kinds = ["x".join([*map(str, t.shape), KINDS[t.dtype]]) for t in program.inputs]
    arguments = ", ".join(f"%{n}: tensor<{kind}>" for n, kind in zip("abcdefgh", kinds, strict=False))
    head = f"func.func public @main({arguments}) -> ({program.results.split(' : ')[1]}) {{"
    with context_to_compile():
        module = ir.Module.parse(f"{head}\n{program.body}\nreturn {program.results}\n}}\n{program.functions}")
        binary = compile_module(module, CompilerConfig(verify_ir=True))
    return Executable(Binary(binary))([real(t) for t in program.inputs])


def real(x: torch.Tensor) -> torch.Tensor:
    """Programs take and return complex numbers as two floats in a last dimension."""
    return torch.view_as_real(x) if x.is_complex() else x


def check(program: Program) -> None:
    expected = program.expected(*program.inputs)
    expected = [expected] if isinstance(expected, torch.Tensor) else expected
    for got, want in zip(run(program), expected, strict=True):
        torch.testing.assert_close(got, real(want), rtol=1e-5, atol=1e-5, equal_nan=True)
