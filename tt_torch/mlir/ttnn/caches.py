"""The writes to caches, and attention to pages, that Tenstorrent's library accepts: a part of legality.py."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import shape
from tt_torch.mlir.ttnn.layout import layout_of
from tt_torch.wire.facts import TILE

NUMBERS = ("update_index", "page_table", "batch_idx_tensor", "cur_pos_tensor")


def unfit_update(op: ir.Operation) -> str:
    """The reason why a write to a cache is not accepted; empty if it is.

    Fills write whole tiles: the rows after the last position in a tile would be lost. They take entries of the cache's
    type, and updates round bfloat16 to block floats.
    """
    cache, new = op.operands[0], op.operands[1]
    kept, given = layout_of(cache).dtype, layout_of(new).dtype
    rounds = kept == "BFP_BFloat8" and "fill" not in op.name
    if given != ("BFloat16" if rounds else kept):
        return f"entries of {given} for a cache of {kept}"
    size, length = shape(cache)[2], shape(new)[2]
    if op.name.startswith("ttnn.paged") and size % TILE:
        return f"pages of {size} positions"
    if op.name == "ttnn.fill_cache" and shape(new)[0] != 1:
        return f"entries of {shape(new)[0]} users"
    if "fill" in op.name and length % TILE and (op.name != "ttnn.fill_cache" or length != size):
        return f"entries of {length} positions"
    if op.name == "ttnn.paged_update_cache" and layout_of(new).memory_layout != "HeightSharded":
        return "entries that are not in parts"
    return _numbers(op) if op.name.startswith("ttnn.paged") else ""


def unfit_attention(op: ir.Operation) -> str:
    """The reason why attention to pages is not accepted; empty if it is."""
    query, key = shape(op.operands[0]), shape(op.operands[1])
    if layout_of(op.operands[0]).dtype != "BFloat16":
        return "queries of block floats"
    if query[3] % TILE or key[2] % TILE:
        return f"heads of {query[3]} and pages of {key[2]} positions"
    return _numbers(op) if ods.operand(op, "attention_mask") is None else "a mask"


def _numbers(op: ir.Operation) -> str:
    """The reason why positions and numbers of pages are not accepted."""
    layouts = [layout_of(x) for name, x in ods.operands_of(op).items() if name in NUMBERS and x is not None]
    refused = (f"numbers of {x.dtype} in {x.page_layout}" for x in layouts if (x.dtype, x.tiled) != ("Int32", False))
    return next(refused, "")
