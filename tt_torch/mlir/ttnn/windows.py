"""Sliding windows for which Tenstorrent's library has no kernel."""

from __future__ import annotations

import math

from tt_torch.mlir import infer, ods
from tt_torch.mlir.rules import shape
from tt_torch.mlir.types import Attrs, Op, Value
from tt_torch.wire.facts import TILE


def unfit_volume(op: Op) -> str:
    """The reason why a 3D convolution is not accepted; empty if it is."""
    a = ods.attrs_of(op)
    if a["groups"] != 1:
        return "groups"
    unit, channels = TILE if math.prod(a["kernel_size"]) % 2 else TILE // 2, shape(op.operands[0])[-1]
    return f"{channels} channels" if channels % unit or a["out_channels"] % TILE else ""


def sliding_size(a: Attrs) -> tuple[int, int]:
    """Height and width of the result of a 2D convolution."""
    top, bottom, left, right = a["padding"]
    vertical = a["input_height"], a["kernel_size"][0], a["stride"][0], top + bottom, a["dilation"][0]
    horizontal = a["input_width"], a["kernel_size"][1], a["stride"][1], left + right, a["dilation"][1]
    return infer.window(*vertical), infer.window(*horizontal)


def too_narrow(a: Attrs) -> bool:
    """Whether the result of a convolution is too narrow for the library's kernel."""
    height, width = sliding_size(a)
    padded = a["input_width"] + a["padding"][2] + a["padding"][3]
    return _too_narrow(a, height, width, a["stride"][0] == 1 and padded == width * a["stride"][1])


def transposed_too_narrow(a: Attrs) -> bool:
    """The same for a transposed convolution, which is a convolution with stride 1 of an image with gaps."""
    height, width = infer.transposed_image(**a)
    return _too_narrow(a, height, width, a["kernel_size"][1] == 1)


def _too_narrow(a: Attrs, height: int, width: int, in_one_run: bool) -> bool:
    """Whether an image with one or two columns has too many rows for the library's reader.

    The reader has room for a list of 16 rows, which is half of the 32 results of a core. This limit does not hold if it
    reads the rows in one run.
    """
    return width <= 2 and a["batch_size"] * height >= 16 and not in_one_run


def one_row_per_channel(a: Attrs, bias: Value | None) -> bool:
    """Whether the library prepares the weights of this convolution in another way."""
    each = a["groups"] == a["in_channels"] == a["out_channels"]
    return each and a["input_height"] == 1 and a["kernel_size"][0] == 1 and bias is None
