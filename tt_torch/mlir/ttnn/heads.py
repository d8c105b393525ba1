"""The heads of attention, and their rotary embeddings, that Tenstorrent's library accepts: a part of legality.py."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import shape
from tt_torch.mlir.ttir.dialect import WIDEST_TURNED
from tt_torch.mlir.ttnn.layout import layout_of
from tt_torch.wire.facts import TILE


def unfit_heads(op: ir.Operation) -> str:
    """The reason why the ops that split or join heads do not accept their size; empty if they accept it."""
    size = shape(op.results[0] if len(op.results) == 3 else op.operands[0])[-1]
    return f"heads of {size}" if size % TILE else ""


def unfit_rotary(op: ir.Operation) -> str:
    """The reason why the rotary embedding does not accept an operand or its tables; empty if it accepts them."""
    x, *tables = op.operands
    if len(shape(x)) != 4 or shape(x)[3] % (2 * TILE):
        return f"a rotary embedding of {shape(x)}"
    wanted = (layout_of(x).dtype, True, [1, 1, *shape(x)[2:]])
    found = [(layout_of(t).dtype, layout_of(t).tiled, shape(t)) for t in tables]
    return "" if found == [wanted, wanted] else f"tables of {shape(tables[0])} and {shape(tables[1])} for {shape(x)}"


def unfit_rotary_by_matrix(op: ir.Operation) -> str:
    """The reason why the rotary embedding with a matrix does not accept shapes; empty if it accepts them.

    The library also takes heads that are not whole tiles. But it then multiplies the padding of the last tile, too.
    """
    x, *tables, matrix = map(shape, op.operands)
    if len(x) != 4 or x[3] % TILE or x[3] > WIDEST_TURNED or matrix != [1, 1, TILE, TILE]:
        return f"a rotary embedding of {x} with a matrix of {matrix}"
    fits = all(table in ([1, 1, *x[2:]], [1, *x[1:]]) for table in tables) and tables[0] == tables[1]
    return "" if fits else f"tables of {tables[0]} and {tables[1]} for {x}"


def unfit_attention(op: ir.Operation) -> str:
    """The reason why the fused op does not accept the shapes of an attention; empty if it accepts them."""
    return unfit_sizes(op) or unfit_mask(op)


def unfit_sizes(op: ir.Operation) -> str:
    """The same, but only for the shapes of query, key and value."""
    query, key, value = (shape(ods.operand(op, name)) for name in ("query", "key", "value"))
    if query[-1] % TILE or value[-1] != query[-1]:
        return f"heads of {query[-1]} and {value[-1]}"
    return f"heads {query[:2]} of {key[:2]}" if query[0] != key[0] or query[1] % key[1] else ""


def unfit_mask(op: ir.Operation) -> str:
    """The same, but only for the masks."""
    query, key = (shape(ods.operand(op, name)) for name in ("query", "key"))
    mask = ods.operand(op, "attention_mask")
    if ods.attr(op, "is_causal") and (query[2] != key[2] or mask is not None):
        return "a causal mask of other sizes, or beside another one"
    if mask is None:
        return ""
    wanted = [(1, query[0]), (1, query[1]), (query[2],), (key[2],)]
    fits = len(shape(mask)) == 4 and all(size in sizes for size, sizes in zip(shape(mask), wanted, strict=True))
    return "" if fits else f"a mask of {shape(mask)}"
