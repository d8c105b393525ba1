"""Rows of the op table: convolutions, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from op_rows import IMAGE, Row, draw, f32, i32, moved


def _conv(name: str, *args: Any, **options: Any) -> Callable[..., torch.Tensor]:
    return lambda x, w, b=None: getattr(F, name)(x, w, b, *args, **options)


def _rows(name: str, forms: dict[str, tuple[Sequence[Any], dict[str, Any]]]) -> list[Row]:
    return [Row(f"{name} {form}".strip(), _conv(name, **o), inputs, scale=10) for form, (inputs, o) in forms.items()]


CONV2D = {
    "": ([IMAGE, (6, 4, 3, 3), (6,)], {}),
    "without bias": ([IMAGE, (6, 4, 3, 3)], {}),
    "1x1": ([IMAGE, (6, 4, 1, 1), (6,)], {}),
    "stride": ([IMAGE, (6, 4, 3, 3), (6,)], {"stride": 2}),
    "stride by side": ([IMAGE, (6, 4, 3, 3)], {"stride": (1, 3)}),
    "narrow": ([(16, 4, 3, 3), (6, 4, 3, 3), (6,)], {}),
    "padding": ([IMAGE, (6, 4, 3, 3), (6,)], {"padding": (1, 2)}),
    "same": ([IMAGE, (6, 4, 3, 3), (6,)], {"padding": "same"}),
    "same even kernel": ([IMAGE, (6, 4, 2, 4)], {"padding": "same"}),
    "dilation": ([IMAGE, (6, 4, 3, 3)], {"dilation": 2}),
    "groups": ([IMAGE, (6, 2, 3, 3), (6,)], {"groups": 2}),
    "depthwise": ([IMAGE, (4, 1, 3, 3), (4,)], {"groups": 4, "padding": 1}),
    "depthwise multiplied": ([IMAGE, (8, 1, 3, 3)], {"groups": 4}),
    "all": ([IMAGE, (6, 2, 3, 3), (6,)], {"stride": 2, "padding": 2, "dilation": 2, "groups": 2}),
    "rank 3": ([(4, 9, 8), (6, 4, 3, 3), (6,)], {}),
    "channels last": (
        [moved(lambda d: draw(IMAGE, d), lambda x: x.to(memory_format=torch.channels_last)), (6, 4, 3, 3)],
        {},
    ),
}
CONV1D = {
    "": ([(3, 4, 9), (6, 4, 3), (6,)], {}),
    "without bias": ([(3, 4, 9), (6, 4, 3)], {}),
    "options": ([(3, 4, 9), (6, 2, 3), (6,)], {"stride": 2, "padding": 2, "dilation": 2, "groups": 2}),
    "depthwise": ([(3, 4, 9), (4, 1, 3)], {"padding": 1, "groups": 4}),
    "same even kernel": ([(3, 4, 9), (6, 4, 4)], {"padding": "same"}),
    "rank 2": ([(4, 9), (6, 4, 3), (6,)], {}),
}
VOLUME = (2, 4, 5, 6, 7)
CONV3D = {
    "": ([VOLUME, (6, 4, 2, 3, 3), (6,)], {}),
    "options": ([VOLUME, (6, 2, 3, 3, 2), (6,)], {"stride": (2, 1, 2), "padding": (1, 0, 1), "groups": 2}),
    "dilation": ([VOLUME, (6, 4, 2, 3, 2)], {"dilation": (2, 1, 3)}),
    "same even kernel": ([VOLUME, (3, 4, 2, 3, 4)], {"padding": "same"}),
    "rank 4": ([VOLUME[1:], (6, 4, 1, 1, 1), (6,)], {}),
}
SMALL = (2, 4, 5, 6)
TRANSPOSED2D = {
    "": ([SMALL, (4, 6, 3, 3), (6,)], {}),
    "stride": ([SMALL, (4, 6, 3, 2)], {"stride": (2, 3)}),
    "output padding": ([SMALL, (4, 6, 3, 3), (6,)], {"stride": 2, "padding": 1, "output_padding": (1, 0)}),
    "all": ([SMALL, (4, 3, 3, 2), (6,)], {"stride": 2, "padding": (1, 0), "dilation": (1, 2), "groups": 2}),
    "rank 3": ([SMALL[1:], (4, 6, 2, 2)], {}),
}
TRANSPOSED1D = {
    "": ([(2, 4, 5), (4, 6, 3), (6,)], {}),
    "options": ([(2, 4, 5), (4, 3, 3)], {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}),
}
TRANSPOSED3D = {
    "": ([(2, 4, 3, 2, 3), (4, 3, 2, 3, 2), (3,)], {"stride": 2}),
    "all": (
        [(2, 4, 3, 2, 3), (4, 3, 3, 2, 2), (6,)],
        {"stride": (2, 1, 3), "padding": (1, 0, 1), "output_padding": (0, 0, 2), "groups": 2, "dilation": (1, 2, 1)},
    ),
}


def _gradients(x: torch.Tensor, w: torch.Tensor, options: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """The gradients of the input, the weight and the bias. The output's gradient is the square of the output."""
    *window, transposed, extra, groups = options
    y = torch.convolution(x, w, None, *window, transposed, extra, groups)
    bias_size = [y.shape[1]]
    backward = torch.ops.aten.convolution_backward
    return backward(y * y, x, w, bias_size, *window, transposed, extra, groups, [True, True, True])


def _gradient_row(name: str, x: tuple[int, ...], w: tuple[int, ...], *options: Any) -> Row:
    return Row(f"{name} backward", lambda x, w: _gradients(x, w, options), [x, w], (f32,), scale=100)


GRADIENTS = [
    Row(
        "conv2d of integers",
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=1, groups=2),
        [IMAGE, (6, 2, 3, 3), (6,)],
        (i32,),
    ),
    Row(
        "conv3d of bytes that wrap",
        lambda x, w: F.conv3d((x * 50).to(torch.int8), (w * 30).to(torch.int8), padding=1),
        [(2, 2, 3, 4, 3), (3, 2, 2, 2, 2)],
        (i32,),
    ),
    _gradient_row("conv2d", IMAGE, (6, 4, 3, 3), [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    _gradient_row("conv2d stride", IMAGE, (6, 4, 3, 3), [2, 3], [1, 0], [1, 1], False, [0, 0], 1),
    _gradient_row("conv2d groups", IMAGE, (6, 2, 3, 3), [1, 1], [2, 2], [2, 2], False, [0, 0], 2),
    _gradient_row("conv2d depthwise", IMAGE, (8, 1, 3, 3), [2, 2], [1, 1], [1, 1], False, [0, 0], 4),
    _gradient_row("conv1d", (3, 4, 9), (6, 2, 3), [2], [1], [1], False, [0], 2),
    _gradient_row("conv3d", VOLUME, (6, 2, 3, 2, 3), [2, 1, 2], [1, 0, 1], [1, 2, 1], False, [0, 0, 0], 2),
    _gradient_row("conv_transpose2d", SMALL, (4, 3, 3, 3), [2, 2], [1, 1], [1, 1], True, [1, 0], 2),
    _gradient_row("conv_transpose1d", (2, 4, 5), (4, 3, 3), [2], [1], [1], True, [1], 1),
    _gradient_row(
        "conv_transpose3d", (2, 4, 3, 2, 3), (4, 3, 2, 2, 2), [2, 2, 2], [0, 1, 0], [1] * 3, True, [0] * 3, 1
    ),
]

CONVOLUTIONS = [
    *_rows("conv2d", CONV2D),
    Row("conv2d relu", lambda x, w, b: F.relu(F.conv2d(x, w, b)), [IMAGE, (6, 4, 3, 3), (6,)], scale=10),
    *_rows("conv1d", CONV1D),
    *_rows("conv3d", CONV3D),
    *_rows("conv_transpose2d", TRANSPOSED2D),
    *_rows("conv_transpose1d", TRANSPOSED1D),
    *_rows("conv_transpose3d", TRANSPOSED3D),
    *GRADIENTS,
]
