"""Placement and layout of a tensor: the `#ttnn.layout` attribute of TTNN tensor types, and the class that reads it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

from torch_mlir import ir

from tt_torch.mlir.types import Attrs, Value
from tt_torch.wire import facts

L1_ALIGNMENT = 16  # bytes: a row that is not in tiles begins at a multiple of this (ttnn 0.81.1)
Changes: TypeAlias = dict[str, bool | str | tuple[int, int]]  # fields of a layout that get another value


@dataclass(frozen=True)
class Layout:
    """Data type (wire name), page layout (tile or row major), buffer type and tensor memory layout.

    `grid` counts the parts of a sharded tensor, down and across: "HeightSharded" has (n, 1), "WidthSharded" (1, n), and
    "BlockSharded" (rows of cores, columns of cores). Each core has one part. An interleaved tensor has (1, 1). In
    DRAM, the parts of a "WidthSharded" tensor lie on banks instead of cores.
    """

    dtype: str
    tiled: bool = True
    buffer: str = "DRAM"  # DRAM, L1, SystemMemory
    memory_layout: str = "Interleaved"
    grid: tuple[int, int] = (1, 1)

    @property
    def sharded(self) -> bool:
        return self.memory_layout != "Interleaved"

    @property
    def cores(self) -> int:
        return math.prod(self.grid)

    @property
    def on_device(self) -> bool:
        return self.buffer != "SystemMemory"

    @property
    def page_layout(self) -> str:
        return facts.page_layout(self.tiled)

    def with_(self, **changes: Any) -> Layout:
        return replace(self, **changes)

    def interleaved(self, buffer: str = "DRAM") -> Layout:
        """The same elements in pages that lie on all banks in turn."""
        return self.with_(buffer=buffer, memory_layout="Interleaved", grid=(1, 1))

    def bytes(self, shape: Sequence[int]) -> int:
        """Bytes in memory of a tensor of this shape."""
        return facts.physical_bytes(self.dtype, self.tiled, shape)

    def part(self, shape: Sequence[int]) -> tuple[int, int]:
        """Rows and columns of one core's part of a sharded tensor, in elements. The last part may have less.

        Example: a tensor of shape (8, 100, 768) in tiles has 8 * 128 rows with their padding. Over a grid of (8, 8),
        each part has 128 rows and 96 columns. Rows that are not in tiles are split in the same way, but not padded.
        """
        rows, columns = tiles(shape)
        width = -(-columns // self.grid[1]) * facts.TILE if self.tiled else -(-shape[-1] // self.grid[1])
        return (-(-rows // self.grid[0]) * facts.TILE, width)

    def bytes_of_core(self, shape: Sequence[int], cores: int) -> int:
        """Bytes in the L1 of the core that has most of a tensor. An interleaved tensor lies on all of `cores`."""
        if self.sharded:
            rows, width = self.part(shape)
            row = -(-self.bytes([width]) // L1_ALIGNMENT) * L1_ALIGNMENT
            return self.bytes((rows, width)) if self.tiled else rows * row
        page = self.bytes((facts.TILE, facts.TILE)) if self.tiled else self.bytes([*shape][-1:])
        pages = -(-self.bytes(shape) // max(page, 1) // cores)
        return pages * -(-page // L1_ALIGNMENT) * L1_ALIGNMENT


def tiles(shape: Sequence[int]) -> tuple[int, int]:
    """The rows and columns of tiles of a tensor. The matrices of the tensor are counted below each other."""
    *outer, rows, columns = [1, 1, *shape]
    return math.prod(outer) * -(-rows // facts.TILE), -(-columns // facts.TILE)


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


def memory_config(layout: Layout, dims: Sequence[int], columns: int) -> Attrs | None:
    """The place of a tensor as the wire has it, on chips with `columns` cores in a row; None for one on the host."""
    if not layout.on_device:
        return None
    config: Attrs = {"tensor_memory_layout": layout.memory_layout, "buffer_type": layout.buffer}
    return config | ({"shard_spec": _shards(layout, dims, columns)} if layout.sharded else {})


def _shards(layout: Layout, dims: Sequence[int], columns: int) -> Attrs:
    """The parts of a tensor. Blocks lie on a rectangle of cores. Other parts lie on whole rows of cores and, if there
    are more parts, on a part of the next row. In DRAM, parts lie on a row of banks."""
    if layout.memory_layout == "BlockSharded" or layout.buffer == "DRAM":
        full, rest = layout.grid[0], 0
        columns = layout.grid[1]
    else:
        full, rest = divmod(layout.cores, columns)
    ranges = [_range(0, full, columns)] if full else []
    ranges += [_range(full, 1, rest)] if rest else []
    return {
        "core_range_set": {"core_ranges": ranges},
        "shape": list(layout.part(dims)),
        "orientation": "RowMajor",
    }


def _range(first: int, rows: int, columns: int) -> Attrs:
    return {"start_coord": {"x": 0, "y": first}, "end_coord": {"x": columns - 1, "y": first + rows - 1}}
