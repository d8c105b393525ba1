"""What Tenstorrent's library takes, and the form of what it makes where that is not what the operands have."""

from __future__ import annotations

from typing import Any

from tt_torch.mlir import infer
from tt_torch.mlir.rules import shape
from tt_torch.mlir.ttnn.layout import layout_of

VERSION = "0.81.1"
FLOATS = frozenset({"Float32", "BFloat16"})
INTEGERS = frozenset({"Int32", "UInt32", "UInt16", "UInt8"})

# Op -> data types of its values, where not all are taken. Operands of other kinds (indices) are not meant.
DTYPES = {
    "ttnn.argmax": FLOATS,
    "ttnn.sort": FLOATS,
    "ttnn.topk": FLOATS,
    "ttnn.embedding": frozenset({"BFloat16"}),
    "ttnn.matmul": FLOATS,
    "ttnn.prod": FLOATS,
    "ttnn.pow": FLOATS,
    "ttnn.avg_pool2d": frozenset({"BFloat16"}),
    "ttnn.max_pool2d": frozenset({"BFloat16"}),
    "ttnn.max_pool2d_with_indices": frozenset({"BFloat16"}),
}
SCATTERED = frozenset({"Invalid", "Sum", "Prod"})  # how elements of a scatter combine


def takes(op: Any, value: Any) -> bool:
    """Whether the library has the op for the data type of a value."""
    return layout_of(value).dtype in DTYPES[op.operation.name]


def is_integer(dtype: str) -> bool:
    return dtype in INTEGERS


def positions(name: str, x: Any, dim: int) -> str:
    """The data type of positions that `ttnn.sort` and `ttnn.topk` find."""
    length = shape(x)[dim]
    rounded = 1 << (length - 1).bit_length() if name == "ttnn.sort" else -(-length // 32) * 32 - 1
    return "UInt16" if layout_of(x).dtype != "Float32" and rounded < 1 << 16 else "UInt32"


def places(height: int, width: int) -> str:
    """The data type of places in an image that `ttnn.max_pool2d_with_indices` finds."""
    return "UInt16" if height * width < 1 << 16 else "UInt32"


def sliding_size(a: dict[str, Any]) -> tuple[int, int]:
    """Height and width that a 2D convolution makes."""
    (top, bottom, left, right) = a["padding"]
    vertical = a["input_height"], a["kernel_size"][0], a["stride"][0], top + bottom, a["dilation"][0]
    horizontal = a["input_width"], a["kernel_size"][1], a["stride"][1], left + right, a["dilation"][1]
    return infer.window(*vertical), infer.window(*horizontal)


def too_narrow(a: dict[str, Any]) -> bool:
    """Whether a convolution makes so many rows of one or two columns that the library's reader has no room for the
    list of them: half of the 32 results of a core."""
    height, width = sliding_size(a)
    padded = a["input_width"] + a["padding"][2] + a["padding"][3]
    in_one_run = a["stride"][0] == 1 and padded == width * a["stride"][1]
    return width <= 2 and a["batch_size"] * height >= 16 and not in_one_run
