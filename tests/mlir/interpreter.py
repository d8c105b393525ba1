"""StableHLO's reference interpreter, which is part of torch-mlir, computes the expected results of a program.

The interpreter ends the process at an op that it does not know. It cannot test programs that have unknown ops.
"""

from __future__ import annotations

import torch
from torch_mlir import ir

from tt_torch.bringup.interpret import evaluate
from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.mlir.context import context_to_compile
from tt_torch.mlir.functions import main
from tt_torch.mlir.stablehlo.dtypes import DTYPES
from tt_torch.runtime import Binary, Executable


def drawn(kind: ir.Type) -> torch.Tensor:
    """Normal floats, booleans, and small integers of both signs."""
    dtype, shape = DTYPES[str(kind.element_type)], list(kind.shape)
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(-3 if dtype.is_signed else 0, 4, shape).to(dtype)


def compiled(text: str, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    with context_to_compile():
        binary = compile_module(ir.Module.parse(text), CompilerConfig(verify_ir=True))
    return Executable(Binary(binary))(inputs)


def inputs_of(text: str) -> list[torch.Tensor]:
    torch.manual_seed(0)
    with context_to_compile():
        module = ir.Module.parse(text)
        return [drawn(argument.type) for argument in main(module).arguments]


def check(text: str, inputs: list[torch.Tensor] | None = None) -> None:
    """Compiles a program and compares its values with the interpreter's. Dtypes may differ: ours are the device's."""
    inputs = inputs_of(text) if inputs is None else inputs
    for got, expected in zip(compiled(text, inputs), evaluate(text, inputs), strict=True):
        tolerance = 2e-2 if "bf16" in text else 1e-5
        torch.testing.assert_close(got.double(), expected.double(), rtol=tolerance, atol=tolerance, equal_nan=True)
