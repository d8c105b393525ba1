"""The circular buffers of ops on interleaved tensors: the bytes of L1 that they take on each core while they run.

All sizes were read from graph captures of ttnn 0.81.1. An op that is not here may take all of the L1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.rules import shape
from tt_torch.mlir.ttnn import sharded
from tt_torch.mlir.ttnn.layout import layout_of, tiles
from tt_torch.mlir.ttnn.optimizer.cores import Cores
from tt_torch.mlir.types import Value
from tt_torch.wire.facts import BLOCK_BITS, TILE

WIDE_TILE = TILE * TILE * 4  # bytes of a tile of float32, in which partial results are kept
FEW_TILES = 12 * WIDE_TILE  # what an element-wise op or a reduction takes: two tiles per tensor, and their casts
SEMAPHORE = 32  # bytes of a global semaphore
MOVING = 64 * 1024  # what an op that moves tiles takes
MASK = 8 * WIDE_TILE  # what an op takes in addition if it masks the end of a row
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


def _tile(op: ir.Operation) -> int:
    """The bytes of a tile of the first operand. Block floats count as bfloat16, which partial results and the weights
    beside them have."""
    layout = layout_of(op.operands[0])
    dtype = "BFloat16" if layout.dtype in BLOCK_BITS else layout.dtype
    return layout.with_(tiled=True, dtype=dtype).bytes((TILE, TILE))


def layer_norm(op: ir.Operation, cores: Cores) -> int:
    return _norm(op, (5, 30) if _tile(op) == WIDE_TILE else (7, 52))


def rms_norm(op: ir.Operation, cores: Cores) -> int:
    return _norm(op, (3, 28) if _tile(op) == WIDE_TILE else (4, 48))


def _norm(op: ir.Operation, sizes: tuple[int, int]) -> int:
    """The buffers have some tiles for each four tiles of a row, and a fixed number of other tiles. They have more if a
    row ends inside of a tile and must be masked. The library reads rows that are too long in parts, which takes less
    memory than this."""
    per_tile, fixed = sizes
    masked = MASK if shape(op.operands[0])[-1] % TILE else 0
    return (per_tile * 4 * -(-_width(op) // 4) + fixed + 1) * _tile(op) + masked


def distributed_norm(op: ir.Operation, part: int) -> int:
    """The bytes that an RMS norm over several chips takes on a core with `part` tiles of its rows.

    The core has the values and their squares in float32, and the weight. It also adds up a row and a column of cores.
    """
    grid = ods.attr(op, "program_config")["compute_with_storage_grid_size"]
    weight = layout_of(op.operands[1]).with_(tiled=True).bytes((TILE, TILE))
    return part * (2 * WIDE_TILE + weight) + (grid["x"] + grid["y"] + 8) * WIDE_TILE


def softmax(op: ir.Operation, cores: Cores) -> int:
    """The buffers have room for each four tiles of a row, also of sharded rows. Rows that end inside of a tile are
    masked in float32."""
    whole, width = shape(op.operands[0])[-1] % TILE == 0, 4 * -(-_width(op) // 4)
    return width * ((_tile(op) if whole else WIDE_TILE) + WIDE_TILE) + (18 if whole else 21) * WIDE_TILE


def sharded_norm(op: ir.Operation, part: tuple[int, int], across: int) -> int:
    """`part` counts the rows and columns of tiles of a part, and `across` the parts that lie beside each other. To
    combine sums, these parts share the rows, so each part has a share of the rows."""
    rows, columns = part
    share, weights = -(-rows // across), len(op.operands) - 1
    if op.name == "ttnn.layer_norm":
        kept = rows * (2 * columns + 5) + 2 * across + 2 + share
    else:
        kept = rows * (2 * columns + 3) + across + 2 + share
    return WIDE_TILE * kept + weights * columns * _tile(op)


def product(op: ir.Operation, cores: Cores) -> int:
    """We do not know which blocks the library chooses. It takes no more than both operands and a block of the result
    with its partial sums, and never more than MOST, or MOST_WITH_BLOCKS if an operand has block floats."""
    (m, n), k, tile = tiles(shape(op.results[0])), _width(op), _tile(op)
    sums = -(-m // cores.rows) * -(-n // cores.columns) * (tile + WIDE_TILE)
    blocks = any(layout_of(value).dtype in BLOCK_BITS for value in [*op.operands, *op.results])
    most = MOST_WITH_BLOCKS if blocks else MOST
    return min((m + n) * k * tile + sums, most)


def rows_of_tiles(op: ir.Operation, cores: Cores) -> int:
    """The buffers have two rows of tiles that are as wide as the result."""
    return _two_rows(op) + MOVING


def to_layout(op: ir.Operation, cores: Cores) -> int:
    """The same, and nothing else if rows become tiles. The library also changes shapes of more than four dimensions."""
    x = op.operands[0]
    return _two_rows(op) if not layout_of(x).tiled and len(shape(x)) <= 4 else rows_of_tiles(op, cores)


def _two_rows(op: ir.Operation) -> int:
    return 2 * tiles(shape(op.results[0]))[1] * _tile(op)


def concat(op: ir.Operation, cores: Cores) -> int:
    """The library joins tensors that end inside of a tile as rows, and makes tiles of the result."""
    dim, result = ods.attr(op, "dim"), op.results[0]
    joined = dim % len(shape(result)) >= len(shape(result)) - 2
    if not joined or not any(shape(v)[dim] % TILE for v in op.operands):
        return MOVING
    return MOVING + _rows([*op.operands, result], cores)


def reduction(op: ir.Operation, cores: Cores) -> int:
    """If other dimensions than the last two are reduced, the library permutes the tensor in the memory of the result.
    That may take more L1 than there is, so such an op counts as one of unknown size."""
    rank = len(shape(op.operands[0]))
    dims = ods.attr(op, "dim_arg") or range(rank)
    return cores.l1 if any(dim % rank < rank - 2 for dim in dims) else FEW_TILES


def cut(op: ir.Operation, cores: Cores) -> int:
    """If a slice begins inside of a tile or has steps, the library makes rows of the tensor, and tiles of the slice."""
    begins = ods.attr(op, "params")["SliceStaticOpParams"]["begins"]
    whole = not any(begin % TILE for begin in begins[-2:]) and set(ods.attr(op, "step")) == {1}
    return MOVING + (0 if whole else _rows([op.operands[0], op.results[0]], cores))


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
    """The buffers have chunks of queries, keys and values, each one tile high."""
    return 16 * _width(op) * _tile(op) + MOVING


Size = int | Callable[[ir.Operation, Cores], int]
SIZES: dict[str, Size] = {
    **dict.fromkeys(sharded.ELEMENTWISE, FEW_TILES),
    **{f"ttnn.{name}": reduction for name in ("sum", "mean", "max", "min")},
    **{f"ttnn.{name}": FEW_TILES for name in ("to_memory_config", "full")},
    **{f"ttnn.{name}": MOVING for name in ("permute", "transpose", "reshape", "repeat")},
    "ttnn.concat": concat,
    "ttnn.slice_static": cut,
    **{f"ttnn.{name}": rows_of_tiles for name in ("embedding", "concatenate_heads")},
    "ttnn.to_layout": to_layout,
    **{f"ttnn.{name}": MOVING for name in ("split_query_key_value_and_split_heads", "rotary_embedding")},
    **dict.fromkeys(sharded.PRODUCTS, product),
    "ttnn.scaled_dot_product_attention": attention,
    "ttnn.layer_norm": layer_norm,
    "ttnn.rms_norm": rms_norm,
    "ttnn.softmax": softmax,
    **{f"ttnn.{name}": 0 for name in ("constant", "to_device", "from_device")},
}
