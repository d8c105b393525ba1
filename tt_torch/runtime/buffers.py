"""Tensors of PyTorch for a program's results, and copies from and to memory that the runtime passes to callbacks."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import TypeAlias

import torch

from tt_torch.errors import InputCountError, TracingError
from tt_torch.memory_error import DeviceMemoryError
from tt_torch.runtime._runtime import DataType, TensorSpec
from tt_torch.runtime.residents import Native
from tt_torch.torch_private.modes import is_traced

_TYPES = {
    torch.float32: DataType.Float32, torch.float16: DataType.Float16, torch.bfloat16: DataType.BFloat16,
    torch.float64: DataType.Float64, torch.int64: DataType.Int64, torch.int32: DataType.Int32,
    torch.int16: DataType.Int16, torch.int8: DataType.Int8, torch.uint8: DataType.UInt8,
    torch.uint16: DataType.UInt16, torch.uint32: DataType.UInt32, torch.uint64: DataType.UInt64,
    torch.bool: DataType.Bool,
}  # fmt: skip
TORCH_TYPES = {wire: dtype for dtype, wire in _TYPES.items()}

# The types of results if the caller gives none. Unsigned integers become signed, because PyTorch has few kernels for
# unsigned types.
RESULT_TYPES = TORCH_TYPES | {
    DataType.BFP_BFloat8: torch.bfloat16, DataType.BFP_BFloat4: torch.bfloat16,
    DataType.UInt32: torch.int64, DataType.UInt16: torch.int32,
}  # fmt: skip
_CPU = torch.device("cpu")
Buffer: TypeAlias = tuple[int, list[int], Native]  # a row-major tensor of the runtime: address, shape and data type


def result_forms(outputs: Sequence[TensorSpec]) -> list[tuple[list[int], torch.dtype]]:
    """Shape and dtype of a program's results if the caller asks for no other type."""
    return [(spec.shape, RESULT_TYPES[spec.dtype]) for spec in outputs]


def make_results(
    results: Sequence[tuple[list[int], torch.dtype]],
    dtypes: Sequence[torch.dtype | None] | None,
    strides: Sequence[tuple[int, ...] | None] | None,
    devices: Sequence[torch.device] | None,
    given: Mapping[int, torch.Tensor] = MappingProxyType({}),
) -> list[torch.Tensor]:
    """Allocates the results of a program. An entry that is None means the program's dtype, contiguous, on the CPU.
    `given` has the tensors of results that are not allocated.

    Raises InputCountError if a list has another length than `results`, DeviceMemoryError if memory is exhausted, and
    TracingError if the ops of PyTorch are recorded now, because the program that fills the results has none.
    """
    if is_traced():
        raise TracingError
    for name, said in (("output_dtypes", dtypes), ("output_strides", strides), ("output_devices", devices)):
        if said is not None and len(said) != len(results):
            raise InputCountError(f"{name} has {len(said)} entries, but the program has {len(results)} results")
    # without a device, `torch.empty` would take the default one, which `with torch.device("meta")` changes
    forms = enumerate(zip(results, dtypes or repeat(None), devices or repeat(_CPU), strict=False))
    try:
        made = [
            given[i] if i in given else torch.empty(shape, dtype=dtype or own, device=device)
            for i, ((shape, own), dtype, device) in forms
        ]
        for i, stride in enumerate(strides or ()):
            if stride is not None and i not in given:
                like = made[i]
                made[i] = torch.empty_strided(like.shape, stride, dtype=like.dtype, device=like.device)
        return made
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise DeviceMemoryError(f"the results cannot be allocated: {reason}") from None


def holds(wire: Native, dtype: torch.dtype) -> bool:
    """Whether the device holds tensors of a dtype in a data type of the wire: floats in floats, integers in integers,
    and booleans in any type."""
    return dtype is torch.bool or TORCH_TYPES[wire].is_floating_point == dtype.is_floating_point


def read(buffer: Buffer) -> torch.Tensor:
    """A copy of a tensor that the runtime passes to a callback or a kernel."""
    data, shape, wire = buffer
    result = torch.empty(shape, dtype=TORCH_TYPES[wire], device=_CPU)
    ctypes.memmove(result.data_ptr(), data, result.nbytes)
    return result


def write(tensor: torch.Tensor, buffer: Buffer) -> None:
    """Copies a tensor of the same shape to memory that the runtime passes to a kernel."""
    data, _, wire = buffer
    plain = tensor.detach().to(TORCH_TYPES[wire]).contiguous()
    ctypes.memmove(data, plain.data_ptr(), plain.nbytes)
