"""StableHLO's reference interpreter, which is part of torch-mlir, computes the expected results of a program.

The interpreter ends the process at an op that it does not know. It cannot test programs that have unknown ops.
"""

from __future__ import annotations

import numpy as np
import torch
from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo

from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.mlir.context import context_to_compile, run_native
from tt_torch.mlir.functions import main
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.dtypes import DTYPES
from tt_torch.runtime import Binary, Executable


def drawn(kind: ir.Type) -> torch.Tensor:
    """Normal floats, booleans, and small integers of both signs."""
    dtype, shape = DTYPES[str(kind.element_type)], list(kind.shape)
    if dtype.is_floating_point:
        return torch.randn(shape).to(dtype)
    return torch.randint(-3 if dtype.is_signed else 0, 4, shape).to(dtype)


def interpreted(text: str, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    with context_to_compile():
        module = ir.Module.parse(text)
        run_native(module, "func.func(chlo-legalize-to-stablehlo)", "inline")
        kinds = [argument.type for argument in main(module).arguments]
        given = [attribute(x, kind) for x, kind in zip(inputs, kinds, strict=True)]
        return [tensor(result) for result in _stablehlo.eval_module(module, given)]


def attribute(x: torch.Tensor, kind: ir.Type) -> ir.Attribute:
    if x.dtype is torch.bool or not x.numel():
        return ir.Attribute.parse(f"dense<{str(x.tolist()).lower() if x.numel() else ''}> : {kind}")
    raw = x.contiguous().reshape(-1).view(torch.uint8)
    return ir.Attribute.parse(f'dense<"0x{raw.numpy().tobytes().hex()}"> : {kind}')


def tensor(result: ir.Attribute) -> torch.Tensor:
    values = attrs.elements(result)
    values = values.astype(np.uint64) if values.dtype.char == "Q" else values  # a name that PyTorch does not know
    return torch.from_numpy(values.copy()).to(DTYPES[str(result.type.element_type)])


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
    for got, expected in zip(compiled(text, inputs), interpreted(text, inputs), strict=True):
        tolerance = 2e-2 if "bf16" in text else 1e-5
        torch.testing.assert_close(got.double(), expected.double(), rtol=tolerance, atol=tolerance, equal_nan=True)
