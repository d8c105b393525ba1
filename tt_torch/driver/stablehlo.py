"""StableHLO modules of any origin as callables on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import CompiledGraph, compile_stablehlo
from tt_torch.driver.devices import Device, default_device
from tt_torch.driver.executor import Executor
from tt_torch.errors import CompileError, InputDtypeError
from tt_torch.mlir.functions import argument_kinds, block, main
from tt_torch.mlir.types import Value

DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i1": torch.bool,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "ui8": torch.uint8,
    "ui16": torch.uint16, "ui32": torch.uint32, "ui64": torch.uint64,
}  # fmt: skip
TensorType: TypeAlias = tuple[tuple[int, ...], torch.dtype]  # shape and dtype
Run: TypeAlias = Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]


def tensor_type(value: Value) -> TensorType:
    """Shape and dtype of a value. Raises CompileError if a PyTorch tensor cannot have them."""
    dtype, kind = _dtype(value), ir.RankedTensorType(value.type)
    if not kind.has_static_shape:
        raise CompileError(f"no PyTorch tensor has the type {value.type}")
    return tuple(kind.shape), dtype


def _dtype(value: Value) -> torch.dtype:
    element = str(value.type.element_type) if isinstance(value.type, ir.RankedTensorType) else ""
    if element not in DTYPES:
        raise CompileError(f"no PyTorch tensor has the type {value.type}")
    return DTYPES[element]


def input_types(module: ir.Module) -> list[TensorType]:
    """Shape and dtype of each argument of `main`."""
    return [tensor_type(argument) for argument in main(module).arguments]


def load_stablehlo(
    module: ir.Module, config: CompilerConfig, constants: Sequence[torch.Tensor] = (), device: Device | None = None
) -> Run:
    """Compiles a module, which is changed on the way, for a device; None is the default device of `config`.

    `constants` are the values of the last arguments of `main`. The result takes the others as a sequence, and returns a
    list of tensors with the dtypes that the module gives. The device computes 64-bit integers in 32 bits, so an input
    beyond these raises InputDtypeError. Raises what `compile_stablehlo` and `device.load` raise.
    """
    *_, end = block(main(module)).operations
    dtypes = [_dtype(value) for value in end.operands]
    kinds = argument_kinds(main(module))
    binary = compile_stablehlo(module, config)
    compiled = CompiledGraph(binary, list(constants), kinds, dtypes, None, compare_weights=config.compare_weights)
    executor = Executor(compiled, device or default_device(config))

    def run(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        for number, value in enumerate(inputs):
            _require_32_bits(number, value)
        return executor(inputs)

    return run


def _require_32_bits(number: int, value: torch.Tensor) -> None:
    if value.dtype not in (torch.int64, torch.uint64) or not value.numel():
        return
    limits = torch.iinfo(torch.int32 if value.dtype == torch.int64 else torch.uint32)
    held = value.cpu().numpy()  # PyTorch does not compare uint64
    if held.min() < limits.min or held.max() > limits.max:
        raise InputDtypeError(f"input {number} has integers beyond 32 bits, and the device computes in 32 bits")
