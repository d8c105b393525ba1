"""The forms of ops that Tenstorrent's library accepts: a rule per op or family. Workarounds and the verifier use them.

A rule names the data types and page layouts that the values may have (indices and positions have their own rule), and
the layouts of the results. A function checks further conditions of the library. The rules were found by trying the
library in the version `VERSION`; `python -m benchmarks legality` repeats this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch_mlir import ir

from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir import ods
from tt_torch.mlir.context import describe, node_of
from tt_torch.mlir.rules import shape
from tt_torch.mlir.ttir import dialect as ttir
from tt_torch.mlir.ttnn import caches, distributed_norms, heads, sharded, windows
from tt_torch.mlir.ttnn.layout import Layout, layout_of
from tt_torch.mlir.types import Op, Value
from tt_torch.wire.custom_ops import MOST_RESULTS
from tt_torch.wire.facts import BLOCK_BITS, TILE

VERSION = "0.81.1"
FLOATS = frozenset({"Float32", "BFloat16", "BFP_BFloat8"})
MULTIPLIED = FLOATS | {"BFP_BFloat4"}  # only weights have BFP_BFloat4
WIDE = frozenset({"Int32", "UInt32"})
INTEGERS = WIDE | {"UInt16", "UInt8"}
PLAIN = FLOATS - {"BFP_BFloat8"}
EVERY = FLOATS | INTEGERS
TILES, ROWS, BOTH = frozenset({"Tile"}), frozenset({"RowMajor"}), frozenset({"Tile", "RowMajor"})

Makes = Callable[[ir.Operation], Sequence[Layout]]


def as_operand(op: ir.Operation) -> list[Layout]:
    """Data type and pages of the first operand."""
    return [layout_of(op.operands[0])] * len(op.results)


def in_tiles(op: ir.Operation) -> list[Layout]:
    return [layout.with_(tiled=True) for layout in as_operand(op)]


def as_wanted(op: ir.Operation) -> list[Layout]:
    """Pages that the call names, in the data type of the first operand."""
    return [layout_of(op.results[0]).with_(dtype=layout_of(op.operands[0]).dtype)]


def as_called(op: ir.Operation) -> list[Layout]:
    """Data type and pages that the call names."""
    return [layout_of(r) for r in op.results]


def as_declared(op: ir.Operation) -> list[Layout]:
    """Any data type, which the call names; pages of the first operand."""
    tiled = layout_of(op.operands[0]).tiled
    return [layout_of(r).with_(tiled=tiled) for r in op.results]


def _laid_out(op: ir.Operation) -> list[Layout]:
    """The layout that to_layout gives. A change to tiles may also change the data type. Rows of block floats are
    bfloat16."""
    was, wanted = layout_of(op.operands[0]), layout_of(op.results[0])
    if wanted.tiled and not was.tiled:
        return [wanted if was.dtype != "UInt8" else was]
    unpacked = "BFloat16" if was.dtype.startswith("BFP") and not wanted.tiled else was.dtype
    return [wanted.with_(dtype=unpacked)]


@dataclass(frozen=True)
class Rule:
    """The first `values` operands must have `dtypes` and `pages`; by default, all operands must."""

    dtypes: frozenset[str] = EVERY
    pages: frozenset[str] = BOTH
    makes: Makes = as_operand
    more: Callable[[ir.Operation], str] = lambda op: ""
    values: int | None = None
    host: bool = False  # whether values may be there
    stays: Callable[[ir.Operation], bool] = lambda op: False  # in the operand's buffer, whatever the call says


def _reduced(op: ir.Operation) -> list[Layout]:
    """If the operand has rows, sums and means of floats have rows, too. All other results have tiles."""
    layout = layout_of(op.operands[0])
    stays = op.name in ("ttnn.sum", "ttnn.mean") and layout.dtype in PLAIN
    return [layout.with_(tiled=layout.tiled or not stays)]


def positions(name: str, x: Value, dim: int) -> str:
    """The data type of positions that `ttnn.sort` and `ttnn.topk` find."""
    sorts = name == "ttnn.sort"  # it rounds the length up to a power of two, and compares the length with 2^16
    longest = 1 << (15 if sorts else 16)
    short = layout_of(x).dtype in ({"BFloat16"} if sorts else FLOATS - {"Float32"})
    return "UInt16" if short and shape(x)[dim] <= longest else "UInt32"


def _ordered(op: ir.Operation) -> list[Layout]:
    (x,) = op.operands
    return [layout_of(x), Layout(positions(op.name, x, ods.attr(op, "dim")))]


def places(height: int, width: int) -> str:
    """The data type of places in an image that `ttnn.max_pool2d_with_indices` finds."""
    return "UInt16" if height * width < 1 << 16 else "UInt32"


def _placed(op: ir.Operation) -> list[Layout]:
    found = places(ods.attr(op, "input_height"), ods.attr(op, "input_width"))
    return [Layout(dtype, tiled=False) for dtype in ("BFloat16", found)]


def _searched(op: ir.Operation) -> str:
    """Why argmax does not take a tensor. It takes floats along any dimension, and rows of others along the last one."""
    (x,) = op.operands
    layout, rank = layout_of(x), len(shape(x))
    if layout.tiled:
        return "" if layout.dtype in PLAIN else f"tiles of {layout.dtype}"
    last = ods.attr(op, "dim") is None or ods.attr(op, "dim") % rank == rank - 1
    return "" if last or layout.dtype in PLAIN else f"rows of {layout.dtype} along another dimension than the last"


def _a_vector(op: ir.Operation) -> str:
    return "a vector" if len(shape(op.operands[0])) < 2 else ""


def _no_tiles_of_bytes(op: ir.Operation) -> str:
    x = layout_of(op.operands[0])
    return "tiles of UInt8" if x.tiled and x.dtype == "UInt8" else ""


def _repeated(op: ir.Operation) -> str:
    (x,) = op.operands
    vector = len(shape(x)) == 1 and layout_of(x).dtype == "UInt8" and ods.attr(op, "repeat_dims") != [1]
    return "a vector of UInt8" if vector else _no_tiles_of_bytes(op)


def _gathered(op: ir.Operation) -> str:
    if len(shape(op.operands[0])) == 1:
        return "a vector"
    index, x = layout_of(ods.operand(op, "index")), layout_of(op.operands[0])
    if index.dtype not in ("UInt32", "UInt16"):
        return f"an index of {index.dtype}"
    return _no_tiles_of_bytes(op) or ("" if index.tiled == x.tiled else f"an index in {index.page_layout}")


SCATTERED = frozenset({"Invalid", "Sum", "Prod"})  # how elements of a scatter combine


def _off_last(op: ir.Operation) -> bool:
    """Whether an op works along another dimension than the last one. The library then transposes, which decides where
    the results are."""
    return ods.attr(op, "dim") % len(shape(op.operands[0])) != len(shape(op.operands[0])) - 1


def _moved_to_sort(op: ir.Operation) -> bool:
    return _off_last(op) and shape(op.operands[0])[ods.attr(op, "dim")] > 1


def _unchanged(op: ir.Operation) -> bool:
    """Whether the op changes nothing, not even the padding of tiles. The library then returns its operand."""
    was, made = layout_of(op.operands[0]), layout_of(op.results[0])
    sizes = (was.bytes(shape(op.operands[0])), made.bytes(shape(op.results[0])))
    return was.tiled == made.tiled and sizes[0] == sizes[1]


def _scattered(op: ir.Operation) -> str:
    if ods.attr(op, "scatter_reduce_type") not in SCATTERED:
        return f"a reduction by {ods.attr(op, 'scatter_reduce_type')}"
    x = layout_of(op.operands[0])
    return "tiles of Float32" if x.tiled and x.dtype == "Float32" else _no_tiles_of_bytes(op)


def _of_the_table(op: ir.Operation) -> list[Layout]:
    return [layout_of(op.results[0]).with_(dtype=layout_of(op.operands[1]).dtype)]


def _looked_up(op: ir.Operation) -> str:
    indices, table = map(layout_of, op.operands)
    if indices.dtype not in ("UInt32", "BFloat16"):
        return f"indices of {indices.dtype}"
    return "" if table.dtype in RULES[op.name].dtypes else f"a table of {table.dtype}"


def _padded(op: ir.Operation) -> str:
    in_front = any(ods.attr(op, "padding")[::2])
    return "padding in front of tiles" if in_front and layout_of(op.operands[0]).tiled else ""


def _powers(op: ir.Operation) -> str:
    base, (kind,) = layout_of(op.operands[0]), ods.attr(op, "rhs")
    if base.dtype not in INTEGERS:
        return ""
    if not base.tiled:
        return "integers in rows"
    return "" if kind == "I32" else "integers to a power that is not whole"


def _bounded(op: ir.Operation) -> str:
    (bounds,) = ods.attr(op, "params").values()
    whole = all("I32" in bound for bound in bounds.values())
    return "" if whole or layout_of(op.operands[0]).dtype in FLOATS else "integers between floats"


def _biased(op: ir.Operation) -> str:
    """In L1, the library adds the bias to a result whose shape it takes from the operands before their transposition,
    unless it is told how to compute the product. If all rows of a bias fit into one tile, it adds only the first of
    them, and adds it to all rows of the result."""
    x, weight = list(op.operands)[:2]
    (rows, columns), bias = shape(weight)[-2:], ods.operand(op, "bias")
    if bias is not None and math.prod(shape(bias)) != shape(bias)[-1] and shape(bias)[-2] <= TILE:
        return "a bias of several rows in one tile"
    changes = ods.attr(op, "transpose_a") or (ods.attr(op, "transpose_b") and rows != columns)
    if not changes or bias is None or ods.attr(op, "matmul_program_config"):
        return ""
    places = {layout_of(value).buffer for value in (x, weight, op.results[0])}
    return "a bias after transposed operands in L1" if "L1" in places else ""


def _attended(op: ir.Operation) -> str:
    mask = ods.operand(op, "attention_mask")
    if mask is not None:
        layout = layout_of(mask)
        if layout.dtype not in RULES[op.name].dtypes or not layout.tiled or layout.buffer != "DRAM":
            return f"a mask of {layout.dtype} in {layout.page_layout}, {layout.buffer}"
    return heads.unfit_attention(op)


def _created(op: ir.Operation) -> str:
    made = layout_of(op.results[0]).dtype
    return "" if made in RULES[op.name].dtypes else f"a result of {made}"


def _prepared(op: ir.Operation) -> str:
    return "an operand on the device" if layout_of(op.operands[0]).on_device else ""


IN_L1 = "a result in L1: some go to DRAM whatever the call says"


def _convolved(op: ir.Operation) -> str:
    a = ods.attrs_of(op)
    if windows.one_row_per_channel(a, ods.operand(op, "bias")):
        return "one row per channel"
    made = layout_of(op.results[0])
    if made.buffer == "L1" and not made.sharded:
        return IN_L1
    return "a narrow image" if windows.too_narrow(a) else ""


def _transposed(op: ir.Operation) -> str:
    if layout_of(op.results[0]).buffer == "L1":
        return IN_L1
    return "a narrow image" if windows.transposed_too_narrow(ods.attrs_of(op)) else ""


def _one_type(op: ir.Operation) -> str:
    """Other ops of two tensors take block floats beside another type."""
    kinds = {layout_of(x).dtype for x in op.operands}
    mixed = len(kinds) > 1 and any(kind in BLOCK_BITS for kind in kinds)
    return f"operands of {' and '.join(sorted(kinds))}" if mixed else ""


def _rule(names: Sequence[str], *fields: Any, **more: Any) -> dict[str, Rule]:
    return {f"ttnn.{name}": Rule(*fields, **more) for name in names}


ARITHMETIC = ("add", "subtract", "multiply")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "logical_left_shift", "logical_right_shift")
WHOLE = ("maximum", "minimum", "remainder", "bitwise_not")
MOVES = ("permute", "transpose")
EXACT = EVERY - {"BFP_BFloat8"}  # block floats come out as bfloat16

CACHES = ["fill_cache", "paged_fill_cache", "paged_update_cache", "update_cache"]
PAGED = "paged_scaled_dot_product_attention_decode"
RULES: dict[str, Rule] = {
    **_rule([*ttir.UNARY, *ttir.UNARY_PREDICATES, "divide"], FLOATS),
    **_rule(["pow", "atan2"], FLOATS, more=_one_type),
    **_rule(["abs", "relu", "relu6"], EVERY),
    **_rule(["neg"], FLOATS | {"Int32"}),
    **_rule(["leaky_relu"], EVERY - {"Int32"}),
    **_rule(["logical_not", *ARITHMETIC], EVERY - {"UInt8"}),
    **_rule(WHOLE, FLOATS | WIDE, more=_one_type),
    **_rule(BITS, INTEGERS - {"UInt8"}),
    **_rule([*ttir.COMPARISONS, *ttir.LOGICAL], EVERY - {"UInt8"}, makes=as_declared),
    **_rule(["pow_scalar"], EVERY - {"UInt8"}, more=_powers),
    **_rule(["clamp_scalar"], FLOATS | {"Int32"}, more=_bounded),
    **_rule(["where"], EVERY, TILES, makes=lambda op: [layout_of(op.operands[1])]),
    **_rule(["typecast"], makes=as_declared),
    **_rule(["sum"], FLOATS | WIDE, makes=_reduced),
    **_rule(["max", "min"], FLOATS | WIDE, makes=_reduced),
    **_rule(["mean"], FLOATS, makes=_reduced),
    **_rule(["prod"], FLOATS, TILES),
    **_rule(["argmax"], EXACT - {"UInt8"}, makes=lambda op: [Layout("UInt32", tiled=False)], more=_searched),
    **_rule(["sort"], PLAIN | {"UInt16"}, TILES, _ordered, stays=_moved_to_sort),
    **_rule(["topk"], FLOATS, TILES, _ordered, stays=_off_last),
    **_rule(["matmul"], MULTIPLIED, TILES, as_declared),
    **_rule(["linear"], MULTIPLIED, TILES, as_declared, more=_biased),
    **_rule(["softmax", "layer_norm", "rms_norm"], FLOATS, TILES),
    **_rule(["conv2d"], PLAIN, BOTH, in_tiles, more=_convolved, values=1),
    **_rule(["conv_transpose2d"], FLOATS, BOTH, in_tiles, more=_transposed, values=1),
    **_rule(["conv3d"], PLAIN, ROWS, more=windows.unfit_volume, values=1),
    **_rule(["max_pool2d", "avg_pool2d"], frozenset({"BFloat16"}), makes=as_wanted),
    **_rule(["max_pool2d_with_indices"], frozenset({"BFloat16"}), BOTH, _placed),
    **_rule(["reshape"], FLOATS | WIDE, host=True),
    **_rule(MOVES, EVERY),
    **_rule(["concat", "slice_static"], EXACT, more=_no_tiles_of_bytes),
    **_rule(["repeat"], EVERY, more=_repeated),
    **_rule(["pad"], EVERY - {"UInt8"}, more=_padded, stays=_unchanged),
    **_rule(["gather"], EVERY, more=_gathered, values=1, stays=_off_last),
    **_rule(["scatter"], EXACT, more=_scattered),
    **_rule(CACHES, FLOATS, TILES, lambda op: [], more=caches.unfit_update, values=2),
    **_rule(["embedding"], FLOATS - {"Float32"}, makes=_of_the_table, more=_looked_up, values=0),
    **_rule(["full"], makes=as_called, more=_created),
    **_rule(["rand"], EVERY - {"UInt8"}, makes=as_called, more=_created),
    **_rule(["arange"], EXACT - {"UInt8"}, makes=as_called, more=_created),
    **_rule(["bitcast_convert"], makes=as_declared),
    **_rule(["all_gather", "point_to_point"], PLAIN | WIDE, TILES),
    **_rule(["all_reduce"], PLAIN, TILES),
    **_rule(["reduce_scatter"], PLAIN, TILES, more=_a_vector),
    **_rule(["mesh_partition"], PLAIN | WIDE, ROWS),
    **_rule(["distributed_rms_norm"], PLAIN, TILES, more=distributed_norms.unfit, values=1),
    **_rule(["empty"], makes=as_called, more=_created),
    **_rule(["to_memory_config"], EVERY | MULTIPLIED),
    **_rule(["prepare_conv2d_weights", "prepare_conv2d_bias"], PLAIN, ROWS, as_called, more=_prepared, host=True),
    **_rule(["scaled_dot_product_attention"], FLOATS - {"Float32"}, TILES, more=_attended, values=3),
    **_rule([PAGED], frozenset({"BFloat16", "BFP_BFloat8"}), TILES, more=caches.unfit_attention, values=3),
    **_rule(["rotary_embedding"], PLAIN, TILES, more=heads.unfit_rotary, values=1),
    **_rule(["rotary_embedding_llama"], frozenset({"BFloat16"}), TILES, more=heads.unfit_rotary_by_matrix),
    **_rule([f"custom_{count}" for count in range(1, MOST_RESULTS + 1)], EVERY, TILES, as_called),
    **_rule(["to_layout"], makes=_laid_out, stays=_unchanged),
    **_rule(["concatenate_heads", "split_query_key_value_and_split_heads"], FLOATS, TILES, more=heads.unfit_heads),
}

# The declaration of an op may say that all data types are taken in tiles. An op without a rule is refused. The tests
# marked "conformance" compare the rules with the library for every row of the op table, and `benchmarks legality` does
# so for random programs.
RULES |= {name: Rule(EVERY, TILES) for name, declared in ods.OPS.items() if declared.facts.get("any_tiles")}

# Ops that need no rule. The first four keep, copy or free memory; the library accepts all data types, page layouts and
# buffers, as was tried. A semaphore is no tensor. The library never sees calls and returns.
ANY_FORM = {"ttnn.constant", "ttnn.to_device", "ttnn.from_device", "ttnn.deallocate", "ttnn.create_global_semaphore"}
ANY_FORM |= {"func.call", "func.return"}


def without_bytes() -> list[str]:
    """Ops that do not take tiles of UInt8."""
    refusing = (_no_tiles_of_bytes, _repeated, _gathered, _scattered)
    free = ("ttnn.typecast", "ttnn.to_layout")
    return [n for n, r in RULES.items() if n not in free and ("UInt8" not in r.dtypes or r.more in refusing)]


def takes(op: Op, value: Value) -> bool:
    """Whether the library has the op for the data type of a value."""
    return layout_of(value).dtype in RULES[op.operation.name].dtypes


def refusal(op: ir.Operation) -> str:
    """Why the library does not take an op, or makes other results than the op has; empty if the op is legal."""
    if op.name in ANY_FORM:
        return ""
    if not op.name.startswith("ttnn."):
        return "an op of another dialect"
    rule = RULES.get(op.name)
    if rule is None:
        return "an op without a rule"
    for operand in list(op.operands)[: rule.values]:
        layout = layout_of(operand)
        if not layout.on_device and not rule.host:
            return "an operand on the host"
        if layout.dtype not in rule.dtypes or layout.page_layout not in rule.pages:
            return f"an operand of {layout.dtype} in {layout.page_layout}"
    return sharded.refusal(op) or rule.more(op) or _other_results(op, rule)


def _other_results(op: ir.Operation, rule: Rule) -> str:
    for result, made in zip(op.results, rule.makes(op), strict=True):
        layout = layout_of(result)
        if (layout.dtype, layout.tiled) != (made.dtype, made.tiled):
            return f"a result of {layout.dtype} in {layout.page_layout}: it is {made.dtype} in {made.page_layout}"
        if rule.stays(op) and layout.buffer != (buffer := layout_of(op.operands[0]).buffer):
            return f"a result in {layout.buffer}: it is in {buffer}"
    return ""


def verify(module: ir.Module) -> None:
    """Raises UnsupportedOpError at the first op that the library does not take."""
    for function in module.body.operations:
        for op in function.regions[0].blocks[0].operations:
            if reason := refusal(op.operation):
                name, target = node_of(op.location)
                detail = f"node {name} needs {op.operation.name}" if name else op.operation.name
                reason = f"{detail}, and ttnn {VERSION} does not take {reason}"
                raise UnsupportedOpError(target or op.operation.name, "legality", describe(op.location), reason)
