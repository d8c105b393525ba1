"""Placement and layout of a tensor: the `#ttnn.layout` attribute of TTNN tensor types, and the class that reads it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

from torch_mlir import ir

from tt_torch.mlir.types import Value
from tt_torch.wire import facts

Changes: TypeAlias = dict[str, bool | str | tuple[int, int]]  # fields of a layout that get another value


@dataclass(frozen=True)
class Layout:
    """Data type (wire name), page layout (tile or row major), buffer type and tensor memory layout."""

    dtype: str
    tiled: bool = True
    buffer: str = "DRAM"  # DRAM, L1, SystemMemory
    memory_layout: str = "Interleaved"
    grid: tuple[int, int] = (1, 1)

    @property
    def on_device(self) -> bool:
        return self.buffer != "SystemMemory"

    @property
    def page_layout(self) -> str:
        return facts.page_layout(self.tiled)

    def with_(self, **changes: Any) -> Layout:
        return replace(self, **changes)

    def bytes(self, shape: list[int]) -> int:
        """Bytes in memory of a tensor of this shape."""
        return facts.physical_bytes(self.dtype, self.tiled, shape)


@cache
def wire_dtype(element: str) -> str:
    """The wire data type of an MLIR element type that TTIR allows."""
    return {"f32": "Float32", "bf16": "BFloat16", "i32": "Int32", "ui32": "UInt32", "ui16": "UInt16", "ui8": "UInt8"}[
        element
    ]


def element_type(dtype: str) -> ir.Type:
    """The MLIR element type for a wire data type; block floats are bf16 in MLIR."""
    unsigned = ir.IntegerType.get_unsigned
    return {
        "Float32": ir.F32Type.get,
        "Int32": lambda: ir.IntegerType.get_signless(32),
        "UInt32": lambda: unsigned(32),
        "UInt16": lambda: unsigned(16),
        "UInt8": lambda: unsigned(8),
    }.get(dtype, ir.BF16Type.get)()


def attribute(layout: Layout) -> ir.Attribute:
    """`#ttnn.layout<"Float32", "Tile", "DRAM", "Interleaved", [1, 1]>`"""
    text = ir.StringAttr.get
    grid = ir.DenseI64ArrayAttr.get(list(layout.grid))
    params = [text(layout.dtype), text(layout.page_layout), text(layout.buffer), text(layout.memory_layout), grid]
    return ir.DynamicAttr.get("ttnn.layout", params)


def layout_of(value: Value) -> Layout:
    """The layout of a value, or of a tensor type."""
    kind = value if isinstance(value, ir.Type) else value.type
    dtype, page, buffer, memory, grid = (p.maybe_downcast() for p in ir.DynamicAttr(kind.encoding).params)
    return Layout(dtype.value, page.value == "Tile", buffer.value, memory.value, tuple(grid))


def with_layout(shape: list[int], layout: Layout) -> ir.RankedTensorType:
    return ir.RankedTensorType.get(shape, element_type(layout.dtype), attribute(layout))
