"""Constants and sequences. A constant of one value is a `ttir.full`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch_mlir import ir

from tt_torch.mlir.rules import Builder, dtype, producer, shape, tensor
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.wire import bfloat16

# Integers up to this size are exact as the float32 that the attributes of some ops are.
EXACT = 2**24


def full(b: Builder, dims: Sequence[int], element: ir.Type, value: float | int) -> Any:
    """A `ttir.full` whose attribute has the element type's kind: an integer or a float."""
    is_int = isinstance(element, ir.IntegerType)
    return b(
        "ttir.full", type=tensor(dims, element), shape=list(dims), fill_value=int(value) if is_int else float(value)
    )


# Ops that make the same value of a splat; torch-mlir casts its scalars from f64 and i64.
SPREADING = ("ttir.broadcast", "ttir.reshape", "ttir.typecast")


def splat_of(value: Any) -> Any:
    """The value of a constant or full of one value, whichever dialect it is in; None for others."""
    op = producer(value, "ttir.full", "stablehlo.constant", "chlo.constant", "arith.constant", *SPREADING)
    if op is None:
        return None
    if op.name == "ttir.full":
        return op.attributes["fill_value"].value
    if op.name in SPREADING:
        return splat_of(op.operands[0])
    return attrs.splat(op.attributes["value"])


@RULES.rewrites("stablehlo.constant", "chlo.constant", "arith.constant")
def constant(op: Any, b: Builder) -> Any:
    result, value = op.results[0], op.operation.attributes["value"]
    if not isinstance(result.type, ir.RankedTensorType) or isinstance(dtype(result), ir.IndexType):
        return None  # a size of the shape computations that torch-mlir leaves behind
    single = attrs.splat(value)
    if single is not None:
        return full(b, shape(result), dtype(result), _fits(single, dtype(result)))
    return b("ttir.constant", type=result.type, value=_elements(attrs.elements(value), result.type))


def _fits(value: float | int, element: ir.Type) -> float | int:
    """64-bit integers as the device's 32-bit ones; PyTorch uses the extremes as "to the end"."""
    if str(element) == "i32":
        return max(-(2**31), min(2**31 - 1, int(value)))
    return value


def _elements(values: np.ndarray, kind: ir.RankedTensorType) -> ir.Attribute:
    """A dense attribute of the device's element type. Booleans are in bf16, too."""
    name = str(kind.element_type)
    if name == "bf16":
        return ir.Attribute.parse(f'dense<"0x{bfloat16.halves(values).tobytes().hex()}"> : {kind}')
    if name in ("i32", "ui32"):
        info = np.iinfo(np.int32 if name == "i32" else np.uint32)
        values = np.clip(values, info.min, info.max)
    target = {"f32": np.float32, "i32": np.int32, "ui32": np.uint32, "ui8": np.uint8}[name]
    return ir.DenseElementsAttr.get(np.ascontiguousarray(values.astype(target)), type=kind)


@RULES.rewrites("stablehlo.get_dimension_size")
def get_dimension_size(op: Any, b: Builder) -> Any:
    return full(b, [], dtype(op.results[0]), shape(op.operands[0])[attrs.integer(op, "dimension")])


@RULES.rewrites("tensor.empty")
def empty(op: Any, b: Builder) -> Any:
    """Elements that the program overwrites, or means to be arbitrary."""
    return full(b, shape(op.results[0]), dtype(op.results[0]), 0)


@RULES.rewrites("stablehlo.iota", "stablehlo.dynamic_iota")
def iota(op: Any, b: Builder) -> Any:
    """torch-mlir writes a static arange as dynamic_iota; the result type has the shape either way."""
    result, dim = op.results[0], attrs.integer(op, "iota_dimension")
    end = shape(result)[dim]
    return b("ttir.arange", type=result.type, start=0, end=end, step=1, arange_dimension=dim)
