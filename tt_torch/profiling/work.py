"""The work of an op of a binary: bytes, flops, and the size of its matrix product. No figure of a chip is in here."""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

from tt_torch.errors import BinaryFormatError
from tt_torch.wire.chips import PASSES
from tt_torch.wire.facts import BLOCK_BITS, DATA_MOVEMENT, FEW_CHANNELS, LOOKUPS, TILE, Op, Tensor, bytes_by_place

_TRANSCENDENTAL = 20  # cycles of the vector unit per element
PRODUCTS = ("MatmulOp", "LinearOp")
CONVOLUTIONS = ("Conv2dOp", "Conv3dOp")
_FACTORS = {"MatmulOp": ("a", "b"), "LinearOp": ("a", "b"), "ScaledDotProductAttentionOp": ("query", "key")}


def traffic(op: Op) -> tuple[Counter[str], Counter[str]]:
    """The bytes that an op reads and writes, by place."""
    read, written = bytes_by_place(op.read), bytes_by_place(op.written)
    if adds_apart(op):  # the product is written, and read by the addition
        between = bytes_by_place(op.results)
        read, written = read + between, written + between
    return read, written


def adds_apart(op: Op) -> bool:
    """Whether the library adds the bias of a product in a kernel of its own. It does so for a bias of several rows."""
    if op.name != "LinearOp" or not op.record.get("bias"):
        return False
    bias = op.tensor("bias")
    return bias.elements > math.prod(bias.shape[-1:])


def matrix_flops(op: Op) -> int:
    """The number of multiplications and additions of an op of the matrix unit; 0 for other ops.

    Example: a product of 32x64 and 64x16 has 2 * 32 * 16 * 64 = 65,536 flops. Raises BinaryFormatError if the op has
    no groups of channels, or a scalar where it needs a matrix.
    """
    try:
        return _matrix_flops(op)
    except (ZeroDivisionError, IndexError):
        raise BinaryFormatError(f"{op.name} at {op.location}: its shapes or groups fit no such op") from None


def _matrix_flops(op: Op) -> int:
    record = op.record
    if op.name in PRODUCTS:
        shape = op.tensor("a").shape
        return 2 * op.tensor("out").elements * shape[-2 if record.get("transpose_a") and len(shape) > 1 else -1]
    if op.name in (*CONVOLUTIONS, "ConvTranspose2dOp"):
        tensor, channels = ("input", "out_channels") if op.name == "ConvTranspose2dOp" else ("out", "in_channels")
        window: int = record[channels] // record["groups"] * math.prod(record["kernel_size"])
        return 2 * op.tensor(tensor).elements * window
    if op.name == "ScaledDotProductAttentionOp":
        return 4 * op.tensor("query").elements * op.tensor("key").shape[-2]
    return 0


class Product(NamedTuple):
    """A batch of matrix products in tiles: `rows` x `inner` times `inner` x `columns`."""

    batch: int
    rows: int
    inner: int
    columns: int


def product(op: Op, flops: int) -> Product | None:
    """The matrix product that an op with this number of flops computes.

    The result is None for attention, which computes two products, and for ops of other kinds.
    Example: a product of 32x64 and 64x48 is `Product(1, 1, 2, 2)`.
    """
    if op.name not in (*PRODUCTS, *CONVOLUTIONS):
        return None
    out = op.tensor("out")
    inner = _rows_of_weights(op) if op.name == "Conv2dOp" else flops // (2 * out.elements)
    *outer, rows, columns = [1, 1, *out.shape]
    if op.name in PRODUCTS and len(op.tensor("b").shape) > 2:
        return _in_tiles(math.prod(outer), rows, inner, columns)
    return _in_tiles(1, math.prod(outer) * rows, inner, columns)  # one matrix for all


def _rows_of_weights(op: Op) -> int:
    """The rows of a 2D convolution's prepared weights. The library pads the channels under each pixel of the window to
    whole tiles, and has zeros for the channels of other groups. If the pixels are split over the cores in rows, it pads
    the channels to a multiple of FEW_CHANNELS, and all that is under a row of the window to whole tiles (ttnn 0.81.1,
    `prepare_conv_weights`)."""
    channels, kernel = op.record["in_channels"], op.record["kernel_size"]  # a damaged file may have any sizes
    if has_rows(op):
        width = math.prod(kernel[-1:]) * math.ceil(channels / FEW_CHANNELS) * FEW_CHANNELS
        return int(math.prod(kernel[:-1]) * math.ceil(width / TILE) * TILE)
    return int(math.prod(kernel) * math.ceil(channels / TILE) * TILE)


def is_product(op: Op) -> bool:
    """Whether a 2D convolution is a matrix product: of single pixels, without steps, padding and groups."""
    if op.name != "Conv2dOp" or op.record["groups"] != 1 or any(op.record["padding"]):
        return False
    return {*op.record["kernel_size"], *op.record["stride"]} == {1}


def has_rows(op: Op) -> bool:
    """Whether the pixels of a 2D convolution are split over the cores, and are not in tiles."""
    pixels = op.tensor("input")
    return not pixels.tiled and pixels.grid is not None


def factors(op: Op) -> tuple[Tensor, Tensor]:
    """The left and the right operand of an op of the matrix unit. Raises BinaryFormatError if no op defines them."""
    fields = _FACTORS.get(op.name, ("input", "weight"))  # pixels and filters of a convolution
    known = {t.id: t for t in op.operands}
    left, right = (known.get(op.tensor(field).id) for field in fields)
    if left is None or right is None:
        raise BinaryFormatError(f"{op.name} at {op.location} reads a tensor which no input or earlier op defines")
    return left, right


def _in_tiles(batch: int, rows: int, inner: int, columns: int) -> Product:
    return Product(batch, *(math.ceil(size / TILE) for size in (rows, inner, columns)))


def fidelity(op: Op) -> str:
    """The math fidelity that the binary asks for. If it asks for none, the fidelity that uses all bits of the operands:
    HiFi2 for block floats (8 bits), HiFi4 for wider types."""
    asked = str((op.record.get("compute_config") or {}).get("math_fidelity"))
    if asked in PASSES:
        return asked
    return "HiFi2" if any(t.dtype in BLOCK_BITS for t in op.operands) else "HiFi4"


def cycles_per_element(op: Op) -> int:
    """Cycles of one vector lane per element: 0 for data movement, 1 for simple ops, 20 for transcendental functions."""
    if op.name in DATA_MOVEMENT or op.name in LOOKUPS:
        return 0
    return _TRANSCENDENTAL if _is_transcendental(op.name, str(op.record.get("type", ""))) else 1


def elements(op: Op) -> int:
    """How many elements the vector unit computes: as many as the largest tensor has, or all results if that is more."""
    work = max([t.elements for t in (*op.read, *op.written)] or [0])
    return max(work, sum(t.elements for t in op.results))


def _is_transcendental(name: str, kind: str) -> bool:
    simple = {"Relu", "Neg", "Abs", "Add", "Subtract", "Multiply", "Maximum", "Minimum", "ClampScalar", "Sum", "Max",
              "Min", "Mean", ""}  # fmt: skip
    return name in ("SoftmaxOp", "LayerNormOp", "RMSNormOp", "BatchNormInferenceOp") or (
        name.startswith("EltwiseUnary") and kind not in simple
    )
