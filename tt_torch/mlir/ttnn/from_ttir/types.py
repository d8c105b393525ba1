"""Types of TTNN values: a TTIR type with the layout that the op making the value gives it."""

from __future__ import annotations

from typing import Any

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.ttnn.layout import Layout, wire_dtype, with_layout


def result_types(name: str, results: Any) -> list[ir.Type]:
    """Tiled in interleaved DRAM, or as the op's declaration says it makes its results."""
    makes = ods.OPS[name].facts.get("makes", {})
    return [with_layout(list(r.type.shape), Layout(wire_dtype(str(r.type.element_type)), **makes)) for r in results]
