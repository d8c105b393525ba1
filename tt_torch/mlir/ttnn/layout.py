"""Where and how a tensor lives: the `#ttnn.layout` attribute on TTNN tensor types, and its Python face."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from torch_mlir import ir

TILE = 32
# Wire name of a data type -> bytes per element; block-float tiles hold 1024 mantissas and 64 shared exponents.
ELEMENT_BYTES = {"Float32": 4, "BFloat16": 2, "UInt32": 4, "Int32": 4, "UInt16": 2, "UInt8": 1}
BLOCK_FLOATS = {"bfp8_b": "BFP_BFloat8"}  # names that options use
TILE_BYTES = {"BFP_BFloat8": 1088, "BFP_BFloat4": 576}


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
        return "Tile" if self.tiled else "RowMajor"

    def with_(self, **changes: Any) -> Layout:
        return replace(self, **changes)

    def bytes(self, shape: list[int]) -> int:
        """Physical size: the last two dimensions of tiled tensors are padded to 32."""
        if not self.tiled:
            return math.prod(shape) * ELEMENT_BYTES[self.dtype]
        rows, columns = ([1, 1, *shape])[-2:]
        tiles = math.prod(shape[:-2]) * -(-rows // TILE) * -(-columns // TILE)
        return tiles * (TILE_BYTES.get(self.dtype) or TILE * TILE * ELEMENT_BYTES[self.dtype])


@cache
def wire_dtype(element: str) -> str:
    """The wire data type of an MLIR element type that TTIR allows."""
    return {"f32": "Float32", "bf16": "BFloat16", "i32": "Int32", "ui32": "UInt32", "ui16": "UInt16", "ui8": "UInt8"}[
        element
    ]


def element_type(dtype: str) -> ir.Type:
    """The MLIR element type of values of a wire data type; block floats compute as bf16."""
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


def layout_of(value: Any) -> Layout:
    """The layout of a value, or of a tensor type."""
    kind = value if isinstance(value, ir.Type) else value.type
    dtype, page, buffer, memory, grid = (p.maybe_downcast() for p in ir.DynamicAttr(kind.encoding).params)
    return Layout(dtype.value, page.value == "Tile", buffer.value, memory.value, tuple(grid))


def with_layout(shape: list[int], layout: Layout) -> ir.RankedTensorType:
    return ir.RankedTensorType.get(shape, element_type(layout.dtype), attribute(layout))
