"""Sliding windows that Tenstorrent's library has no kernel for."""

from __future__ import annotations

from typing import Any

from tt_torch.mlir import infer


def sliding_size(a: dict[str, Any]) -> tuple[int, int]:
    """Height and width that a 2D convolution makes."""
    top, bottom, left, right = a["padding"]
    vertical = a["input_height"], a["kernel_size"][0], a["stride"][0], top + bottom, a["dilation"][0]
    horizontal = a["input_width"], a["kernel_size"][1], a["stride"][1], left + right, a["dilation"][1]
    return infer.window(*vertical), infer.window(*horizontal)


def too_narrow(a: dict[str, Any]) -> bool:
    """Whether a convolution makes an image that is too narrow for its kernel."""
    height, width = sliding_size(a)
    padded = a["input_width"] + a["padding"][2] + a["padding"][3]
    return _too_narrow(a, height, width, a["stride"][0] == 1 and padded == width * a["stride"][1])


def transposed_too_narrow(a: dict[str, Any]) -> bool:
    """The same of a transposed convolution, which is one with stride 1 over an image spread out."""
    height, width = infer.transposed_image(**a)
    return _too_narrow(a, height, width, a["kernel_size"][1] == 1)


def _too_narrow(a: dict[str, Any], height: int, width: int, in_one_run: bool) -> bool:
    """So many rows of one or two columns that the library's reader has no room for the list of them, which is half of
    the 32 results of a core, unless it reads them in one run."""
    return width <= 2 and a["batch_size"] * height >= 16 and not in_one_run


def one_row_per_channel(a: dict[str, Any], bias: Any) -> bool:
    """Whether a convolution is one that the library prepares in another way."""
    each = a["groups"] == a["in_channels"] == a["out_channels"]
    return each and a["input_height"] == 1 and a["kernel_size"][0] == 1 and bias is None
