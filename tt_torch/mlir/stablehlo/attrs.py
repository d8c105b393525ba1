"""Typed readers of StableHLO and arith attributes. torch-mlir has no Python classes for StableHLO's ops."""

from __future__ import annotations

import re

import numpy as np
from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo

from tt_torch.mlir.types import Attr, Op
from tt_torch.wire import bfloat16


def ints(op: Op, name: str) -> Attr:
    """The integers of an array or dense attribute as a flat list; None if it is absent."""
    attributes = op.operation.attributes
    if name not in attributes:
        return None
    value = attributes[name]
    if isinstance(value, ir.DenseIntElementsAttr):
        return elements(value).reshape(-1).tolist()
    return list(value)


def integer(op: Op, name: str) -> int:
    return op.operation.attributes[name].value


def number(op: Op, name: str) -> float:
    return op.operation.attributes[name].value


def direction(op: Op) -> str:
    """EQ, NE, GE, GT, LE or LT of a compare. CHLO's attribute has no Python class, so its text is read."""
    return str(op.operation.attributes["comparison_direction"]).rstrip(">").split()[-1]


def convolution(op: Op) -> _stablehlo.ConvDimensionNumbers:
    return _stablehlo.ConvDimensionNumbers(op.operation.attributes["dimension_numbers"])


def dot(op: Op) -> _stablehlo.DotDimensionNumbers:
    return _stablehlo.DotDimensionNumbers(op.operation.attributes["dot_dimension_numbers"])


def gather(op: Op) -> _stablehlo.GatherDimensionNumbers:
    return _stablehlo.GatherDimensionNumbers(op.operation.attributes["dimension_numbers"])


def scatter(op: Op) -> _stablehlo.ScatterDimensionNumbers:
    return _stablehlo.ScatterDimensionNumbers(op.operation.attributes["scatter_dimension_numbers"])


def elements(value: ir.Attribute) -> np.ndarray:
    """The elements of a constant in C order. bf16 becomes float32, because NumPy has no bf16."""
    if not isinstance(value, ir.DenseElementsAttr):
        return _resource(value)
    if isinstance(value.type.element_type, ir.BF16Type):
        return _bf16(value)
    return np.array(value).reshape(value.type.shape)


def _bf16(value: ir.Attribute) -> np.ndarray:
    if value.is_splat:
        return np.full(value.type.shape, value.get_splat_value().value, np.float32)
    text = str(value)[len("dense<") :].rpartition(" : ")[0]  # the binding cannot read elements of this type
    if blob := re.match(r'"0x([0-9A-F]*)"', text):
        halves = np.frombuffer(bytes.fromhex(blob[1]), np.uint16)
    else:
        halves = np.array([_half(number) for number in re.findall(r"0x[0-9A-F]+|[-+.\de]+", text)], np.uint16)
    return bfloat16.floats(halves).reshape(value.type.shape)


def _half(number: str) -> int:
    """The bits of one printed bf16: a decimal, or hex digits for infinities and NaN."""
    if number.startswith("0x"):
        return int(number, 16)
    # the printed decimals are rounded, so this rounds again
    return (int(np.float32(number).view(np.uint32)) + 0x8000) >> 16


_RESOURCE_DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "i64": np.int64,
    "i32": np.int32,
    "i1": np.bool_,
    "ui8": np.uint8,
}


def _resource(value: ir.Attribute) -> np.ndarray:
    """The elements of a `dense_resource`, which torch-mlir uses for constant indices.

    The binding gives no access to them, but a module with the attribute prints them: four bytes of alignment, then the
    elements.
    """
    dtype = _RESOURCE_DTYPES[str(value.type.element_type)]
    with value.context, ir.Location.unknown():
        module = ir.Module.create()
        module.operation.attributes["value"] = value
    digits = re.search(r'"0x([0-9A-Fa-f]*)"', str(module))
    blob: np.ndarray = np.frombuffer(bytes.fromhex(digits[1])[4:], dtype)  # type: ignore[index]
    return blob.reshape(value.type.shape)


def splat(value: ir.Attribute) -> int | float | None:
    """The value of a constant whose elements are all equal; otherwise None."""
    if not isinstance(value, ir.DenseElementsAttr) or not value.is_splat:
        return None
    return value.get_splat_value().value
