"""The form of an RMS norm over several chips that Tenstorrent's library takes (`fused_rms_minimal` of ttnn 0.81.1).

The library does not compare `stats` with the number of chips. Its kernels write a tile per chip there, and divide by
the number of tiles.
"""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.mesh import mesh_of
from tt_torch.mlir.rules import shape
from tt_torch.mlir.ttnn.layout import Layout, layout_of
from tt_torch.wire.facts import TILE

STATS = Layout("Float32", buffer="L1", memory_layout="WidthSharded")
WEIGHTS = ("Float32", "BFloat16")


def unfit(op: ir.Operation) -> str:
    x, weight = list(op.operands)[:2]
    stats, made = ods.operand(op, "stats"), layout_of(op.results[0])
    *outer, rows, width = [1, 1, *shape(x)]
    if len(shape(x)) != 4 or any(size != 1 for size in outer) or not 0 < rows <= TILE or width % TILE:
        return f"rows of the shape {shape(x)}"
    if made.memory_layout != "WidthSharded" or made != layout_of(x) or width // TILE % made.cores:
        return "rows that are not split by width into equal parts in L1"
    lies = layout_of(weight)
    if lies.tiled or lies.sharded or lies.dtype not in WEIGHTS or shape(weight) != [width // TILE, TILE]:
        return f"a weight of the shape {shape(weight)} and {lies.dtype} in {lies.page_layout}"
    chips = mesh_of(op)[ods.attr(op, "cluster_axis")]
    if stats is None or layout_of(stats) != STATS or shape(stats) != [1, 1, TILE, TILE * chips]:
        return "statistics that do not have a tile of Float32 for each chip"
    return "" if ods.attr(op, "semaphore") else "an exchange without a semaphore"
