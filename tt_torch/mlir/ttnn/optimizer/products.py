"""Matrix products of sharded tensors: the library's program configurations, and what they need.

The library has one kernel for results in blocks. It sends parts of both operands along rows and columns of cores.
Another kernel is for results that are split in one direction. It sends all of one operand to all cores. A third kernel
is for one row of tiles: one core for each bank of DRAM reads the part of the weight that lies there. Each core
computes a part of `per_core_m` x `per_core_n` tiles, in subblocks that fit the registers of its matrix unit. Each step
takes `in0_block_w` tiles of the inner dimension. The sizes of circular buffers were read from graph captures of ttnn
0.81.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.parts import even, shares
from tt_torch.mlir.rules import producer, shape
from tt_torch.mlir.ttir.constness import is_constant
from tt_torch.mlir.ttnn.layout import Layout, layout_of, tiles
from tt_torch.mlir.ttnn.optimizer.buffers import FEW_TILES, LONGEST_STEP, WIDE_TILE
from tt_torch.mlir.ttnn.optimizer.choice import Choice
from tt_torch.mlir.ttnn.optimizer.cores import Cores, by_block, by_height, by_width, largest_part, like
from tt_torch.mlir.ttnn.optimizer.overriding import layouts
from tt_torch.mlir.ttnn.sharded import BANKS
from tt_torch.mlir.types import Attrs, Value
from tt_torch.overrides import Asked
from tt_torch.wire.facts import BLOCK_BITS, TILE

BLOCKS = "MatmulMultiCoreReuseMultiCastProgramConfig"
LINES = "MatmulMultiCoreReuseMultiCast1DProgramConfig"
LEAST_STEP = 3  # tiles of the inner dimension in one step of BANKS: fewer were slower (tt-mlir, pull request 9252)
WIDEST = 8  # tiles of a subblock of BANKS, which the library chooses
REGISTERS = 4  # tiles of float32 in the matrix unit's registers, of which one half is computed while one is packed
MOST_ROWS = 2  # the most rows of tiles with which all of the left operand is sent to every core
# The members of UnaryOpType, by the names of activations in the op. The library computes another activation, such as
# gelu_tanh, in a kernel of its own, which does not take a sharded product.
ACTIVATIONS = {"relu": "Relu", "gelu": "Gelu", "silu": "Silu", "sigmoid": "Sigmoid", "tanh": "Tanh", "relu6": "Relu6"}


@dataclass(frozen=True)
class _Product:
    """A product of tiles: m x k times k x n, on a grid of (rows, columns) of cores for the result."""

    op: ir.Operation
    m: int
    k: int
    n: int
    wanted: Asked


def choices(op: ir.Operation, cores: Cores, wanted: Asked) -> Iterator[Choice]:
    """Forms of a product with a result in DRAM or in L1, and with sharded results."""
    product = _of(op, wanted)
    plain = layout_of(op.results[0]).interleaved()
    if product is None:
        return
    yield from _in_blocks(product, plain, cores)
    yield from _in_columns(product, plain, cores)
    yield from _in_rows(product, plain, cores)
    yield from _in_banks(product, plain, cores)


def whole(op: ir.Operation, cores: Cores) -> float:
    """The products of two tiles on the busiest core, if the library chooses blocks, rows or columns of the result."""
    (m, n), k = tiles(shape(op.results[0])), -(-shape(op.operands[0])[-1] // TILE)
    grids = ((cores.rows, cores.columns), (cores.count, 1), (1, cores.count))
    return float(min(math.prod(largest_part((m, n), grid)) for grid in grids) * k)


def _of(op: ir.Operation, wanted: Asked) -> _Product | None:
    """The product, if its second operand is one matrix and its rows need no transposition. A split matrix times itself
    would be in two places at once, and has no form here."""
    a, b = op.operands[0], op.operands[1]
    if a == b and layout_of(b).sharded:
        return None
    matrix = len(shape(b)) >= 2 and math.prod(shape(b)[:-2]) == 1 and len(shape(a)) >= 2
    if not matrix or ods.attr(op, "transpose_a") or len(shape(op.results[0])) != len(shape(a)):
        return None
    bias = _bias(op)
    if bias is not None and _is_added_apart(bias) and (ods.attr(op, "activation") or shape(bias) != _made(op)):
        return None
    (m, k), n = tiles(shape(a)), tiles(_made(op))[1]
    return _Product(op, m, k, n, wanted)


def _made(op: ir.Operation) -> list[int]:
    return shape(op.results[0])


def _bias(op: ir.Operation) -> Value | None:
    return ods.operand(op, "bias") if op.name == "ttnn.linear" else None


def _activation(op: ir.Operation) -> str:
    return (ods.attr(op, "activation") if op.name == "ttnn.linear" else None) or ""


def _is_added_apart(bias: Value) -> bool:
    """The library adds a bias of several rows to the product in a kernel of its own."""
    return math.prod(shape(bias)) != shape(bias)[-1]


def _in_blocks(p: _Product, plain: Layout, cores: Cores) -> Iterator[Choice]:
    """The left operand and the result lie in blocks on the same rows of cores."""
    if p.m == 1:
        return
    a, out = p.op.operands[0], p.op.results[0]
    left = by_block(layout_of(a), shape(a), even(p.k, cores.columns), cores)
    more = {"transpose_mcast": False, "fuse_batch": True}
    found = [by_block(plain, shape(out), columns, cores) for columns in _columns(p, cores.columns)]
    for result in dict.fromkeys([*found, *_wanted(p, "BlockSharded", plain, cores)]):
        rows = result.grid[0]
        yield from _forms(p, BLOCKS, more, left.with_(grid=(rows, left.grid[1])), result, (rows, cores.columns))


def _in_columns(p: _Product, plain: Layout, cores: Cores) -> Iterator[Choice]:
    """Each core has all rows and some columns of the result; the left operand is sent to all."""
    a = p.op.operands[0]
    left = by_width(layout_of(a), shape(a), cores)
    found = _columns(p, cores.count) if p.m <= MOST_ROWS else ()
    results = [plain.with_(buffer="L1", memory_layout="WidthSharded", grid=(1, columns)) for columns in found]
    for result in dict.fromkeys([*results, *_wanted(p, "WidthSharded", plain, cores)]):
        yield from _forms(p, LINES, _line(True), left, result, _lines(max(left.cores, result.cores), cores))


def _columns(p: _Product, most: int) -> Iterable[int]:
    """Two numbers of columns: one that gives equal parts, which more ops can read, and then one that computes fastest.
    If two forms take equally long, the first one is chosen."""
    return dict.fromkeys((even(p.n, most), shares(p.n, most)))


def _in_rows(p: _Product, plain: Layout, cores: Cores) -> Iterator[Choice]:
    """Each core has some rows of the left operand and of the result; the right operand is sent to all."""
    found = [by_height(plain, shape(p.op.results[0]), cores)] if p.m >= cores.count // 2 else []
    for result in dict.fromkeys([*found, *_wanted(p, "HeightSharded", plain, cores)]):
        left = like(layout_of(p.op.operands[0]), result)
        yield from _forms(p, LINES, _line(False), left, result, _lines(result.cores, cores))


def _in_banks(p: _Product, plain: Layout, cores: Cores) -> Iterator[Choice]:
    """The weight lies in parts on the banks of DRAM, and the core beside each bank computes the columns of its part.

    The left operand and the result are split by columns, in any numbers of parts. A public port of a language model to
    ttnn found that this kernel adds a bias wrongly, so products with a bias have other forms.
    """
    weight, now = layout_of(p.op.operands[1]), layout_of(p.op.operands[0])
    plain_product = _bias(p.op) is None and _activation(p.op) in ("", *ACTIVATIONS)
    if not cores.banks or p.m > 1 or not plain_product or weight.sharded or not _is_free(p.op.operands[1], p.op):
        return
    kept = weight.with_(buffer="DRAM", memory_layout="WidthSharded", grid=(1, shares(p.n, cores.banks)))
    few = now.with_(buffer="L1", memory_layout="WidthSharded", grid=(1, _fewest(p.k, cores)))
    columns = [plain.with_(buffer="L1", memory_layout="WidthSharded", grid=(1, n)) for n in _columns(p, cores.count)]
    for result in dict.fromkeys([*columns, *_wanted(p, "WidthSharded", plain, cores)]):
        for left in dict.fromkeys([now, few] if now.sharded and _reads(now, few, p) else [few]):
            yield from _of_banks(p, left, kept, result)


def _is_free(weight: Value, reader: ir.Operation) -> bool:
    """Whether a weight may lie elsewhere: it is constant, and nobody else reads it, who would need a second copy. A
    transposed weight of block floats must come from a cast, before which it can be transposed."""
    if not is_constant(weight) or len(list(weight.uses)) > 1:
        return False
    turns = ods.attr(reader, "transpose_b") and layout_of(weight).dtype in BLOCK_BITS
    return not turns or cast_to_blocks(weight) is not None


def cast_to_blocks(weight: Value) -> ir.Operation | None:
    """The op that makes block floats of another type on the device."""
    cast = producer(weight, "ttnn.typecast", "ttnn.to_layout") if layout_of(weight).dtype in BLOCK_BITS else None
    source = layout_of(cast.operands[0]) if cast else None
    return cast if source and source.on_device and source.dtype not in BLOCK_BITS else None


def _fewest(inner: int, cores: Cores) -> int:
    """The least number of equal parts of the inner dimension that are at most a step long."""
    parts = (n for n in range(1, cores.count + 1) if inner % n == 0)
    return next((n for n in parts if inner // n <= LONGEST_STEP), even(inner, cores.count))


def _of_banks(p: _Product, left: Layout, kept: Layout, result: Layout) -> Iterator[Choice]:
    """The kernel with each length of a step, the longest first."""
    each, (_, part) = p.k // left.grid[1], largest_part((1, p.n), result.grid)
    columns, fused = largest_part((1, p.n), kept.grid)[1], ACTIVATIONS.get(_activation(p.op))
    for step in (n for n in range(LONGEST_STEP, LEAST_STEP - 1, -1) if each % n == 0):
        config: Attrs = {"in0_block_w": step, "per_core_m": 1, "per_core_n": part}
        config["fused_activation"] = {"op_type": fused, "params": []} if fused else None
        attributes: Attrs = {"matmul_program_config": {BANKS: config}, "transpose_b": False}
        attributes |= {"activation": None} if fused else {}
        scratch = _scratch_of_banks(p, left, result, columns, step)
        yield Choice(result, {0: left, 1: kept}, attributes, scratch, float(columns * p.k), weights=(1,))


def _scratch_of_banks(p: _Product, left: Layout, result: Layout, columns: int, step: int) -> int:
    """Bytes of circular buffers: two steps of the left operand, three of a bank's columns, the part of the result that
    a bank's core computes, in whole subblocks, and its sums in float32."""
    first, second, out = (layout.bytes((TILE, TILE)) for layout in (left, layout_of(p.op.operands[1]), result))
    several = p.k > step
    made = max(-(-columns // n) * -(-columns // -(-columns // n)) for n in (REGISTERS, WIDEST))
    size = step * (first * (2 if several else 1) + columns * second * (3 if several else 1))
    return size + made * (out + (WIDE_TILE if out != WIDE_TILE else 0))


def _wanted(p: _Product, kind: str, plain: Layout, cores: Cores) -> list[Layout]:
    return [each for each in layouts(p.wanted, plain, _made(p.op), cores) if each.memory_layout == kind]


def _lines(count: int, cores: Cores) -> tuple[int, int]:
    """The rows and columns of a grid that has at least `count` cores, in whole rows."""
    return math.ceil(count / cores.columns), cores.columns


def _step(inner: int) -> int:
    """The longest step that divides a core's part of the inner dimension."""
    return even(inner, LONGEST_STEP)


def _line(mcast_in0: bool) -> Attrs:
    more = {"gather_in0": False, "num_global_cb_receivers": 0, "untilize_out": False}
    return {"mcast_in0": mcast_in0, "fuse_batch": True, "hop_cores": {"core_ranges": []}} | more


def _common(p: _Product, part: tuple[int, int], step: int, grid: tuple[int, int]) -> Attrs:
    height, width = _subblock(*part)
    fused = ACTIVATIONS.get(_activation(p.op))
    return {
        "compute_with_storage_grid_size": {"x": grid[1], "y": grid[0]},
        "in0_block_w": step,
        "out_subblock_h": height,
        "out_subblock_w": width,
        "out_block_h": part[0],
        "out_block_w": part[1],
        "per_core_m": part[0],
        "per_core_n": part[1],
        "fused_activation": {"op_type": fused, "params": []} if fused else None,
    }


def _subblock(rows: int, columns: int) -> tuple[int, int]:
    """The largest subblock that fits the registers and divides the part. It has several rows only if it is as wide as
    the part, because the library packs whole rows of a sharded result."""
    width = even(columns, REGISTERS)
    return (even(rows, REGISTERS // width) if width == columns else 1), width


def _forms(
    p: _Product, kind: str, more: Attrs, wanted: Layout, result: Layout, grid: tuple[int, int]
) -> Iterator[Choice]:
    """The kernel with each place of the left operand that it reads, and with each place of the result."""
    part, now = largest_part((p.m, p.n), result.grid), layout_of(p.op.operands[0])
    moved = [like(now, result)] if 0 in p.wanted.moved else []
    activation = _activation(p.op)
    apart = activation not in ("", *ACTIVATIONS)
    read = [*(each for each in (now, *moved) if _reads(each, wanted, p)), wanted]
    for left in dict.fromkeys(each.interleaved("L1") if apart and each.sharded else each for each in read):
        step = _step(p.k // left.grid[1])
        attributes: Attrs = {"matmul_program_config": {kind: _common(p, part, step, grid) | more}}
        if activation in ACTIVATIONS:
            attributes["activation"] = None  # the configuration has it
        places = [] if apart else [result]
        for place in (*places, layout_of(p.op.results[0]).interleaved()):
            operands = {0: left} | _place_of_right(p) | _place_of_bias(p, place)
            scratch = _scratch(p, left, place, part, step)
            yield Choice(place, operands, attributes, scratch, float(math.prod(part) * p.k))


def _place_of_right(p: _Product) -> dict[int, Layout]:
    """A right operand that is sharded, because another op has just made it, is joined in L1."""
    layout = layout_of(p.op.operands[1])
    return {1: layout.interleaved("L1")} if layout.sharded else {}


def _place_of_bias(p: _Product, result: Layout) -> dict[int, Layout]:
    """A bias of several rows that is sharded lies as the result does. A sharded row is moved to DRAM."""
    bias = _bias(p.op)
    if bias is None or not layout_of(bias).sharded:
        return {}
    layout = layout_of(bias)
    return {2: like(layout, result) if _is_added_apart(bias) else layout.interleaved()}


def _reads(now: Layout, wanted: Layout, p: _Product) -> bool:
    """Whether the kernel takes the left operand from its place. It may be interleaved. If it is sharded, it must have
    the same direction and rows, and equal parts of the inner dimension."""
    same = now.memory_layout == wanted.memory_layout and now.grid[0] == wanted.grid[0]
    return not now.sharded or (same and p.k % now.grid[1] == 0)


def _scratch(p: _Product, left: Layout, result: Layout, part: tuple[int, int], step: int) -> int:
    """Bytes of circular buffers. They have steps of both operands, twice if there are several steps, and the bias. They
    also have partial sums in float32, and the result unless it stays where it is computed."""
    rows, columns = part
    double = 2 if p.k > step else 1
    bias = _bias(p.op)
    first, second, out = (layout.bytes((TILE, TILE)) for layout in (left, layout_of(p.op.operands[1]), result))
    size = double * step * columns * second
    if left.memory_layout == "HeightSharded":
        size += rows * p.k * first if p.k > step else 0  # with one step, it is read where it lies
    else:
        size += double * step * rows * first
    if bias is not None and _is_added_apart(bias):
        size += FEW_TILES + (result.bytes((rows * TILE, columns * TILE)) if result.sharded else 0)  # the product
    elif bias is not None:
        size += columns * layout_of(bias).bytes((TILE, TILE))
    if not result.sharded:
        size += rows * columns * out
    return size + (rows * columns * WIDE_TILE if out != WIDE_TILE else 0)
