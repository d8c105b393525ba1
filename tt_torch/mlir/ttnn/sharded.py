"""Which ops of Tenstorrent's library take and make tensors that are split over the cores, and in which forms.

All was tried with ttnn 0.81.1 on mock devices. An op that is not here takes interleaved tensors only.
"""

from __future__ import annotations

import math

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import shape
from tt_torch.mlir.ttir import dialect as ttir
from tt_torch.mlir.ttnn.layout import Layout, layout_of, tiles
from tt_torch.mlir.types import Attrs, Value
from tt_torch.wire.facts import BLOCK_BITS, TILE

BANKS = "MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig"


def _names(*names: str) -> set[str]:
    return {f"ttnn.{name}" for name in names}


ONE_OPERAND = _names(*ttir.UNARY, *ttir.UNARY_PREDICATES, "leaky_relu", "clamp_scalar", "pow_scalar", "typecast")
SEVERAL_OPERANDS = _names(*ttir.BINARY, *ttir.COMPARISONS, *ttir.LOGICAL, "where")
ELEMENTWISE = ONE_OPERAND | SEVERAL_OPERANDS
NORMS = _names("layer_norm", "rms_norm")
PRODUCTS = _names("matmul", "linear")
# They read sharded tensors, and give interleaved ones.
MOVES = _names("permute", "transpose", "slice_static")
# They take interleaved tensors in any memory.
HEADS = _names(
    "split_query_key_value_and_split_heads", "rotary_embedding", "scaled_dot_product_attention", "concatenate_heads"
)
# They have other rules for sharded operands.
OWN = _names("paged_update_cache", "to_memory_config", "deallocate", "distributed_rms_norm", "empty")
OWN |= {"func.return", "func.call"}


def refusal(op: ir.Operation) -> str:
    """Why the library does not take an op with its sharded operands and results; empty if it does, or if none is
    sharded."""
    layouts = [layout_of(v) for v in (*op.operands, *op.results)]
    if op.name in OWN or not any(layout.sharded for layout in layouts):
        return ""
    rows = [value for value, layout in zip((*op.operands, *op.results), layouts, strict=True) if not layout.tiled]
    if op.name == "ttnn.to_layout":
        return "" if _keeps_rows(op) else "another change of pages of parts than from tiles to rows"
    if any(layout_of(value).sharded and not (op.name == "ttnn.conv2d" and value == op.operands[0]) for value in rows):
        return "rows that are split over cores"
    if not op.results or not _takes(op):
        kinds = sorted({layout.memory_layout for layout in layouts if layout.sharded})
        return f"operands and a result that are {' and '.join(kinds)}"
    return ""


def _takes(op: ir.Operation) -> bool:
    first, made = layout_of(op.operands[0]), layout_of(op.results[0])
    others = [layout_of(v) for v in list(op.operands)[1:]]
    if op.name in PRODUCTS and others[0].sharded:
        return _reads_banks(op)
    if op.name in PRODUCTS:
        bias = [value for value in list(op.operands)[2:] if layout_of(value).sharded]
        lie = all(_alike(layout_of(value), made) and shape(value) == shape(op.results[0]) for value in bias)
        return lie and ods.attr(op, "matmul_program_config") is not None
    if op.name in ONE_OPERAND:
        return _alike(first, made)
    if op.name in SEVERAL_OPERANDS:
        return _elementwise(op, made)
    if any(layout.sharded for layout in others):
        return False
    if op.name in NORMS:
        return _alike(first, made) and made.memory_layout != "HeightSharded" and equal_columns(made, op.results[0])
    if op.name == "ttnn.softmax":
        return _alike(first, made) and made.memory_layout == "HeightSharded" and along_rows(op)
    if op.name == "ttnn.conv2d":
        return (ods.attr(op, "conv2d_config") or {}).get("shard_layout") == made.memory_layout and _alike(first, made)
    if op.name == "ttnn.max_pool2d":
        return _alike(first, made) and made.memory_layout == "HeightSharded"
    if op.name == "ttnn.reshape" and made.sharded:
        return keeps_tiles(op) and _alike(first, made)
    if op.name == "ttnn.reshape":
        return joins_parts(op)
    return op.name in MOVES and not made.sharded and whole_tiles(op.operands[0])


def _reads_banks(op: ir.Operation) -> bool:
    """Whether a product of one row of tiles reads its weight from the banks of DRAM: it has this configuration, its
    weight lies there in columns, and the other operand and the result are split into columns over cores."""
    left, weight, made = (layout_of(v) for v in (*list(op.operands)[:2], op.results[0]))
    config: Attrs = ods.attr(op, "matmul_program_config") or {}
    turned = ods.attr(op, "transpose_a") or ods.attr(op, "transpose_b") or len(op.operands) > 2
    if BANKS not in config or turned or tiles(shape(op.operands[0]))[0] > 1:
        return False
    equal = tiles(shape(op.operands[0]))[1] % left.grid[1] == 0
    places = [(layout.memory_layout, layout.buffer) for layout in (left, weight, made)]
    return equal and places == [("WidthSharded", buffer) for buffer in ("L1", "DRAM", "L1")]


def _keeps_rows(op: ir.Operation) -> bool:
    """Whether `to_layout` makes rows of a core's tiles in the core's own memory, from where convolutions read them."""
    was, made = layout_of(op.operands[0]), layout_of(op.results[0])
    return was.tiled and not made.tiled and made.memory_layout == "HeightSharded" and _alike(was, made)


def _alike(first: Layout, made: Layout) -> bool:
    return (first.memory_layout, first.grid) == (made.memory_layout, made.grid)


def _elementwise(op: ir.Operation, made: Layout) -> bool:
    """The library takes operands in any places, if those that are split have the result's shape and parts."""
    for value in op.operands:
        layout = layout_of(value)
        if layout.sharded and (tiles(shape(value)) != tiles(shape(op.results[0])) or not _alike(layout, made)):
            return False
    return True


def along_rows(softmax: ir.Operation) -> bool:
    """Whether a softmax is computed along the last dimension."""
    rank = len(shape(softmax.results[0]))
    return bool(ods.attr(softmax, "dimension") % rank == rank - 1)


def equal_columns(layout: Layout, value: Value) -> bool:
    """Whether all columns of cores have equally many whole columns of tiles. Padding would count as parts of rows."""
    return tiles(shape(value))[1] % layout.grid[1] == 0 and shape(value)[-1] % TILE == 0


def keeps_tiles(op: ir.Operation) -> bool:
    """Whether a reshape leaves all elements where they are in their tiles: rows and columns stay what they are."""
    before, after = shape(op.operands[0]), shape(op.results[0])
    if min(len(before), len(after)) < 2 or before[-1] != after[-1]:
        return False
    return before[-2] == after[-2] or (before[-2] % TILE == 0 and after[-2] % TILE == 0)


def joins_parts(op: ir.Operation) -> bool:
    """Whether a reshape reads a split tensor and gives an interleaved one. The library converts block floats before."""
    return layout_of(op.operands[0]).dtype not in BLOCK_BITS


def whole_tiles(value: Value) -> bool:
    """Whether a tensor has no padding."""
    dims = shape(value)
    return len(dims) > 1 and not any(size % TILE for size in dims[-2:]) and math.prod(dims) > 0
