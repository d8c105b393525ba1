"""Types of TTNN values: the TTIR type with the layout that the op produces."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.ttnn.layout import Layout, wire_dtype, with_layout


def result_types(name: str, results: ir.OpResultList) -> list[ir.Type]:
    """The result types of an op: tiles in interleaved DRAM, unless its declaration says otherwise."""
    makes = ods.OPS[name].facts.get("makes", {})
    return [with_layout(list(r.type.shape), Layout(wire_dtype(str(r.type.element_type)), **makes)) for r in results]
