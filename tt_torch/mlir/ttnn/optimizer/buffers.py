"""The circular buffers of ops on interleaved tensors: the bytes of L1 that they take on each core while they run.

All sizes were read from graph captures of ttnn 0.81.1. An op that is not here may take all of the L1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import shape
from tt_torch.mlir.ttir import dialect as ttir
from tt_torch.mlir.ttnn import sharded
from tt_torch.mlir.ttnn.layout import layout_of, tiles
from tt_torch.mlir.ttnn.optimizer.cores import Cores
from tt_torch.mlir.types import Attrs, Value
from tt_torch.wire.facts import BLOCK_BITS, TILE

WIDE_TILE = TILE * TILE * 4  # bytes of a tile of float32, in which partial results are kept
FEW_TILES = 12 * WIDE_TILE  # what an element-wise op or a reduction takes: two tiles per tensor, and their casts
SEMAPHORE = 32  # bytes of a global semaphore
MOVING = 64 * 1024  # what an op that moves tiles takes at most
MAPPING = 512  # bytes that say where the parts of a tile come from
ROW_BYTES = 32  # rows begin at multiples of this
ROWS_TO_PAD = 32 * 1024  # bytes of rows that are padded together
REDUCED = 11  # tiles that a reduction takes
REDUCED_SHORT = 9  # tiles that it takes if its matrix has fewer than four tiles
TALL = 8 * WIDE_TILE  # what a sum of a long column takes, which is computed in two steps
WHOLE_TYPES = {"BFloat16", "Float32", "Int32", "UInt32", "UInt16"}  # element-wise ops convert no others
LOGICAL = {f"ttnn.{name}" for name in ttir.LOGICAL}
LEAST = 2 * WIDE_TILE  # what a product takes beside its blocks
MOST = 1152 * 1024  # what a product takes at most: the library chooses smaller blocks if it would take more
MOST_WITH_BLOCKS = 1328 * 1024  # the same for a product with block floats
ROWS_OF_COPIES = 6  # rows of tiles in the buffers of ops that make rows of tiles, or tiles of rows
LONGEST_STEP = 8  # tiles of the inner dimension of a product in one step; more are hardly faster


def needed(op: ir.Operation, cores: Cores) -> int:
    """The bytes that an op needs on each core beside its operands and results."""
    size = SIZES.get(op.name)
    return min(size(op, cores) if callable(size) else size, cores.l1) if size is not None else cores.l1


def _width(op: ir.Operation) -> int:
    return tiles(shape(op.operands[0]))[1]


def _tile(value: Value) -> int:
    """The bytes of a tile of a value. Block floats count as bfloat16, which partial results and the weights beside them
    have."""
    layout = layout_of(value)
    dtype = "BFloat16" if layout.dtype in BLOCK_BITS else layout.dtype
    return layout.with_(tiled=True, dtype=dtype).bytes((TILE, TILE))


def elementwise(op: ir.Operation, cores: Cores) -> int:
    """The buffers have two tiles of each tensor. There are two more if an operand is repeated along rows or columns.
    There are two more for each operand of `where` if one is repeated along rows. Logical ops first compare with zero.

    The library may convert operands of other types.
    """
    made, operands = op.results[0], list(op.operands)
    types = [layout_of(v).dtype for v in (*operands, made)]
    if set(types) - WHOLE_TYPES or len(set(types[-3:-1])) > 1:
        return FEW_TILES
    *read, written = (_tile(v) for v in (*operands, made))
    spread = [v for v in operands if _outline(v) != _outline(made)]
    more = 0
    if op.name == "ttnn.where" and any(_outline(v)[0] != _outline(made)[0] for v in spread):
        more = 2 * sum(read)
    elif len(read) == 2:
        more = (2 * max(read) if spread else 0) + (sum(read) if op.name in LOGICAL else 0)
    return 2 * (sum(read) + written) + more


def _outline(value: Value) -> list[int]:
    return [1, 1, *shape(value)][-2:]


def layer_norm(op: ir.Operation, cores: Cores) -> int:
    return _norm(op, 2, 14, wide=True)


def rms_norm(op: ir.Operation, cores: Cores) -> int:
    wide = _sums_in_float32(op, free=False)
    return _norm(op, 1, 12 if wide else 14, wide)


def _norm(op: ir.Operation, kept: int, fixed: int, wide: bool) -> int:
    """The buffers have a row in blocks of 4 or 8 tiles, its weights, and `kept` intermediate results. The library reads
    rows that are too long in parts, which takes less memory than this."""
    block, inner = (4, WIDE_TILE) if wide else (8, WIDE_TILE // 2)
    x, *weights = op.operands
    columns = block * -(-tiles(shape(x))[1] // block)
    row = _tile(x) + sum(map(_tile, weights)) + kept * inner
    return columns * row + 2 * block * (_tile(x) + (inner if weights else 0)) + fixed * inner


def _sums_in_float32(op: ir.Operation, free: bool) -> bool:
    """Whether an op adds up in float32: so do ops without a configuration, and `free` says it for those with an empty
    one, which the library fills in."""
    config: Attrs | None = ods.attrs_of(op).get("compute_config")
    return True if config is None else bool(config.get("fp32_dest_acc_en", free))


def distributed_norm(op: ir.Operation, part: int) -> int:
    """The bytes that an RMS norm over several chips takes on a core with `part` tiles of its rows.

    The core has the values and their squares in float32, and the weight. It also adds up a row and a column of cores.
    """
    grid = ods.attr(op, "program_config")["compute_with_storage_grid_size"]
    weight = layout_of(op.operands[1]).with_(tiled=True).bytes((TILE, TILE))
    return part * (2 * WIDE_TILE + weight) + (grid["x"] + grid["y"] + 8) * WIDE_TILE


def softmax(op: ir.Operation, cores: Cores) -> int:
    """The buffers have room for a row, also of sharded rows. The library computes a row in blocks of up to 4 or 8
    tiles. It masks a row that ends inside of a tile, and needs another block for that."""
    if not sharded.along_rows(op):
        return _softmax_of_columns(op)
    x, wide = op.operands[0], _sums_in_float32(op, free=True)
    masked, (_, columns) = shape(x)[-1] % TILE > 0, tiles(shape(x))
    inner, most = (WIDE_TILE, 4) if wide else (WIDE_TILE // 2, 8)
    block = min(columns, most)
    fixed = (4 if wide else 5) * inner + (WIDE_TILE // 2 if _tile(x) == WIDE_TILE else 0)
    row = 2 * WIDE_TILE if masked else _tile(x) + inner
    return block * -(-columns // block) * row + fixed + 2 * block * _tile(x) * (2 if masked else 1)


def _softmax_of_columns(op: ir.Operation) -> int:
    """The buffers have the tiles of a column. Along other dimensions than the last two, they have a few tiles."""
    x, rank = op.operands[0], len(shape(op.operands[0]))
    if ods.attr(op, "dimension") % rank < rank - 2:
        return 10 * WIDE_TILE
    down = tiles(shape(x)[-2:])[0]
    return down * (2 * _tile(x) + 2 * WIDE_TILE) + 3 * _tile(x) + 4 * WIDE_TILE


def sharded_norm(op: ir.Operation, part: tuple[int, int], across: int) -> int:
    """`part` counts the rows and columns of tiles of a part, and `across` the parts that lie beside each other. To
    combine sums, these parts share the rows, so each part has a share of the rows."""
    rows, columns = part
    share, weights = -(-rows // across), len(op.operands) - 1
    if op.name == "ttnn.layer_norm":
        kept = rows * (2 * columns + 5) + 2 * across + 2 + share
    else:
        kept = rows * (2 * columns + 3) + across + 2 + share
    return WIDE_TILE * kept + weights * columns * _tile(op.operands[0])


def product(op: ir.Operation, cores: Cores) -> int:
    """We do not know which blocks the library chooses. It takes no more than both operands and a block of the result
    with its partial sums, and never more than MOST, or MOST_WITH_BLOCKS if an operand has block floats. An operand that
    it must transpose gets a copy where it lies."""
    turned = [v for v, name in zip(op.operands, ("transpose_a", "transpose_b"), strict=False) if ods.attr(op, name)]
    in_l1 = [v for v in turned if layout_of(v).buffer == "L1"]
    copies = sum(layout_of(v).interleaved("L1").bytes_of_core(shape(v), cores.count) for v in in_l1)
    if math.prod(shape(op.operands[1])[:-2]) > 1:
        return _product_of_batches(op) + copies
    (m, n), tile = tiles(shape(op.results[0])), _tile(op.operands[0])
    k = -(-_outline(op.operands[0])[0 if ods.attr(op, "transpose_a") else 1] // TILE)
    sums = -(-m // cores.rows) * -(-n // cores.columns) * (tile + WIDE_TILE)
    blocks = any(layout_of(value).dtype in BLOCK_BITS for value in [*op.operands, *op.results])
    most = MOST_WITH_BLOCKS if blocks else MOST
    read = m * (2 if ods.attr(op, "transpose_a") else 1) + n
    return min(read * k * tile + sums + LEAST, most) + copies


def _product_of_batches(op: ir.Operation) -> int:
    """A core computes blocks of up to 16 tiles in rows and columns. There are at most 64 at once, or 128 if the
    result is not beside its partial sums. This was enough for 1,100 random products of two batches."""
    down, across = (-(-size // TILE) for size in _outline(op.results[0]))
    tile, count = _tile(op.operands[0]), down * across
    blocks = 2 * (min(down, 16) + min(across, 16)) * tile
    return blocks + min(count, 128) * WIDE_TILE + min(count, 64) * tile + LEAST + 4 * tile


def copy(op: ir.Operation, cores: Cores) -> int:
    return 2 * _tile(op.operands[0])


def permute(op: ir.Operation, cores: Cores) -> int:
    return 6 * _tile(op.operands[0]) + 64


def reshape(op: ir.Operation, cores: Cores) -> int:
    """Beside a tile, the buffers have 32 bytes for each run of elements that stay together in a row of the tile. There
    is one run more at each end of a row. Block floats are converted before and after."""
    x, made = op.operands[0], op.results[0]
    if layout_of(x).dtype in BLOCK_BITS:
        copies = ((layout_of(v).with_(dtype="BFloat16").interleaved("L1"), shape(v)) for v in (x, made))
        return 2 * WIDE_TILE + sum(layout.bytes_of_core(dims, cores.count) for layout, dims in copies)
    shortest = min(TILE, (shape(x) or [1])[-1])
    runs = TILE * (-(-min(TILE, (shape(made) or [1])[-1]) // max(shortest, 1)) + 2)
    return _tile(x) + runs * 32


def to_layout(op: ir.Operation, cores: Cores) -> int:
    """The buffers have two rows of tiles of both forms, or one of each if a row or column ends inside of a tile."""
    whole = layout_of(op.operands[0]).tiled and not any(size % TILE for size in _outline(op.results[0]))
    return (4 if whole else 2) * _row(op.results[0])


def embedding(op: ir.Operation, cores: Cores) -> int:
    """The library makes tiles of the rows that it finds, and has two rows of tiles before and after that."""
    return 4 * _row(op.results[0])


def _row(value: Value) -> int:
    """The bytes of a row of tiles of a value."""
    return tiles(shape(value))[1] * layout_of(value).with_(tiled=True).bytes((TILE, TILE))


def concat(op: ir.Operation, cores: Cores) -> int:
    """The library joins tensors that end inside of a tile as rows, and makes tiles of the result. Or it has room for
    three rows of tiles of each tensor."""
    dim, result = ods.attr(op, "dim"), op.results[0]
    joined = dim % len(shape(result)) >= len(shape(result)) - 2
    if not joined or not any(shape(v)[dim] % TILE for v in op.operands):
        return 2 * _tile(result) + _rows_of_one_dimension(op, cores)
    values = [*op.operands, result]
    beside = 3 * sum(tiles(shape(v))[1] for v in values) * _tile(result)
    return max(beside, _rows(values, cores))


def cut(op: ir.Operation, cores: Cores) -> int:
    """If a slice begins inside of a tile or has steps, the library makes rows of the tensor, and tiles of the slice."""
    begins = ods.attr(op, "params")["SliceStaticOpParams"]["begins"]
    whole = not any(begin % TILE for begin in begins[-2:]) and set(ods.attr(op, "step")) == {1}
    if whole:
        return 2 * _tile(op.results[0]) + MAPPING + _rows_of_one_dimension(op, cores)
    return 2 * _tile(op.results[0]) + _rows([op.operands[0], op.results[0]], cores)


def _rows_of_one_dimension(op: ir.Operation, cores: Cores) -> int:
    """The library joins and cuts tensors of one dimension as rows."""
    values = [*op.operands, op.results[0]]
    return _rows(values, cores) if len(shape(op.results[0])) == 1 else 0


def repeat(op: ir.Operation, cores: Cores) -> int:
    """The library repeats tiles if it can, and else rows, which it makes of tiles first. Its copies lie in DRAM, where
    the optimizer leaves the result."""
    return max(8 * _tile(op.results[0]), 2 * _row(op.results[0]), 4 * _row(op.operands[0]))


def pad(op: ir.Operation, cores: Cores) -> int:
    """The buffer has six tiles, or it has 32 KiB of rows, which are filled up to a multiple of 16 rows."""
    made = op.results[0]
    if layout_of(made).tiled:
        return 6 * _tile(made)
    stick = -(-layout_of(made).bytes(shape(made)[-1:]) // ROW_BYTES) * ROW_BYTES
    return ROWS_TO_PAD + 16 * stick


def reduction(op: ir.Operation, cores: Cores) -> int:
    """Besides a few tiles, there is the result before the reduced dimensions are removed. If both of the last two
    dimensions are reduced, the library reduces the last one first, in float32.

    If other dimensions than these are reduced, the library permutes the tensor in the memory of the result. That may
    take more L1 than there is, so such an op counts as one of unknown size.
    """
    x, made = op.operands[0], op.results[0]
    dims, rank = shape(x), len(shape(x))
    reduced = {dim % rank for dim in ods.attr(op, "dim_arg") or range(rank)}
    if any(dim < rank - 2 for dim in reduced):
        return cores.l1
    kept = [1 if i in reduced else size for i, size in enumerate(dims)]
    in_l1 = [layout_of(v).with_(tiled=True).interleaved("L1") for v in (x, made)]
    copies = 0 if ods.attr(op, "keep_dim") else in_l1[1].bytes_of_core(kept, cores.count)
    if len(reduced) > 1:
        rows = in_l1[0].with_(dtype="Float32").bytes_of_core([*dims[:-1], 1], cores.count)
        return REDUCED * WIDE_TILE + copies + rows
    down, across = (-(-size // TILE) for size in _outline(x))
    tall = TALL if rank - 2 in reduced and down > 16 else 0
    return max((REDUCED if down * across >= 4 else REDUCED_SHORT) * _tile(x), tall) + copies


def running(op: ir.Operation, cores: Cores) -> int:
    """A sum along another dimension than the last two turns the tensor before and after. Other types than bfloat16 are
    always turned."""
    x = op.operands[0]
    rank = len(shape(x))
    as_it_lies = layout_of(x).dtype == "BFloat16" and ods.attr(op, "dim") % rank >= rank - 2
    return (8 if as_it_lies else 10) * _tile(x)


def largest(op: ir.Operation, cores: Cores) -> int:
    """The most that was measured for up to 128,256 columns. The library chooses its algorithm by their number."""
    columns = _along(op, op.operands[0])
    few = 18 if ods.attr(op, "k") <= TILE else 24
    return (few if columns <= 16 else 208) * _tile(op.operands[0])


def _along(op: ir.Operation, value: Value) -> int:
    """The tiles of a value along the dimension of the op."""
    return -(-shape(value)[ods.attr(op, "dim")] // TILE)


def sort(op: ir.Operation, cores: Cores) -> int:
    """A core sorts rows of up to 64 tiles, whose number is filled up to a power of two. Cores share longer rows."""
    columns = _along(op, op.operands[0])
    kept = 2 * max(2, 1 << (columns - 1).bit_length()) if columns <= 64 else 208
    return (kept + 14) * _tile(op.operands[0])


def gather(op: ir.Operation, cores: Cores) -> int:
    """The rows of both operands along the dimension, and what the library needs to turn it to the end."""
    return (sum(_along(op, v) for v in op.operands) + 14) * _tile(op.operands[0])


def scatter(op: ir.Operation, cores: Cores) -> int:
    """The library turns the dimension to the end and works on rows: one op after the other has two rows of a tensor."""
    turned = (2 * max(_along(op, v), tiles(shape(v))[1]) * _tile(v) for v in op.operands)
    return max(6 * WIDE_TILE, *turned) + MAPPING


def place_of_largest(op: ir.Operation, cores: Cores) -> int:
    """A few tiles, or the parts of a row that a core reads."""
    x = op.operands[0]
    return 6 * _tile(x) if layout_of(x).tiled else min(4 * shape(x)[-1], 8 * WIDE_TILE) + 256


def _rows(values: Sequence[Value], cores: Cores) -> int:
    """Returns the bytes of L1 on each core that an op takes to compute in rows.

    They are copies of its tensors, and buffers that make rows of tiles and tiles of rows.
    """
    copies, widest = 0, 0
    for value in values:
        layout = layout_of(value).with_(tiled=True).interleaved("L1")
        copies += layout.bytes_of_core(shape(value), cores.count)
        widest = max(widest, tiles(shape(value))[1] * layout.bytes((TILE, TILE)))
    return copies + ROWS_OF_COPIES * widest


def attention(op: ir.Operation, cores: Cores) -> int:
    """The buffers have chunks of queries, keys and values, each one tile high. The library scales a mask before."""
    query, _, _, *mask = op.operands
    copies = sum(layout_of(v).interleaved("L1").bytes_of_core(shape(v), cores.count) for v in mask)
    return (10 * _width(op) + 12) * _tile(query) + copies


def rotary_embedding(op: ir.Operation, cores: Cores) -> int:
    return (10 * _width(op) + 4) * _tile(op.operands[0])


def split_heads(op: ir.Operation, cores: Cores) -> int:
    return max(4, 2 * tiles(shape(op.results[0]))[1]) * _tile(op.operands[0])


def concatenate_heads(op: ir.Operation, cores: Cores) -> int:
    return 2 * _row(op.results[0])


Size = int | Callable[[ir.Operation, Cores], int]
SIZES: dict[str, Size] = {
    **dict.fromkeys(sharded.ELEMENTWISE, elementwise),
    **{f"ttnn.{name}": reduction for name in ("sum", "mean", "max", "min")},
    "ttnn.cumsum": running,
    "ttnn.topk": largest,
    "ttnn.sort": sort,
    "ttnn.argmax": place_of_largest,
    "ttnn.gather": gather,
    "ttnn.scatter": scatter,
    "ttnn.pad": pad,
    "ttnn.to_memory_config": copy,
    "ttnn.full": FEW_TILES,
    **{f"ttnn.{name}": permute for name in ("permute", "transpose")},
    "ttnn.reshape": reshape,
    "ttnn.repeat": repeat,
    "ttnn.concat": concat,
    "ttnn.slice_static": cut,
    "ttnn.embedding": embedding,
    "ttnn.concatenate_heads": concatenate_heads,
    "ttnn.to_layout": to_layout,
    "ttnn.split_query_key_value_and_split_heads": split_heads,
    "ttnn.rotary_embedding": rotary_embedding,
    **dict.fromkeys(sharded.PRODUCTS, product),
    "ttnn.scaled_dot_product_attention": attention,
    "ttnn.layer_norm": layer_norm,
    "ttnn.rms_norm": rms_norm,
    "ttnn.softmax": softmax,
    **{f"ttnn.{name}": 0 for name in ("constant", "to_device", "from_device")},
}
