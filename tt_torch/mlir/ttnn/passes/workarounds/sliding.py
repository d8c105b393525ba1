"""Convolution and pooling."""

from __future__ import annotations

import math

import numpy as np
from torch_mlir import ir

from tt_torch.mlir import infer, ods
from tt_torch.mlir.rules import Builder, shape
from tt_torch.mlir.ttnn import legality, windows
from tt_torch.mlir.ttnn.layout import Layout, layout_of, with_layout
from tt_torch.mlir.ttnn.passes.workarounds.registry import full, make, reshape, slices, typecast, workaround
from tt_torch.mlir.types import Attrs, Op, Value
from tt_torch.wire.facts import TILE


@workaround("ttnn.avg_pool2d")
def average_pooling_of_whole_images(op: Op, b: Builder) -> Value | None:
    """The average of a whole image becomes a mean. The library has no room for the window of a large image:

    "Statically allocated dataflow buffers on core range [0-0 - 1-0] grow to 262249824 B which is beyond max L1 size"
    """
    (x,), a = op.operands, ods.attrs_of(op)
    sizes = [a["input_height"], a["input_width"]]
    if a["kernel_size"] != sizes or any(a["padding"]):
        return None
    apart = reshape(b, x, [a["batch_size"], 1, math.prod(sizes), a["channels"]])
    return reshape(b, make(b, "mean", apart, dim_arg=[2], keep_dim=True), shape(op.results[0]))


@workaround("ttnn.avg_pool2d")
def average_pooling_of_float32(op: Op, b: Builder) -> Value | None:
    """float32 is averaged by a convolution of each channel with equal weights:

    "Only BFLOAT16 supported for now"
    """
    (x,), a = op.operands, ods.attrs_of(op)
    if legality.takes(op, x):
        return None
    channels, kernel = a["channels"], a["kernel_size"]
    top, left, bottom, right = a["padding"]
    geometry = {k: a[k] for k in ("batch_size", "input_height", "input_width", "kernel_size", "stride", "dilation")}
    geometry |= {"in_channels": channels, "out_channels": channels, "groups": channels}
    geometry["padding"] = [top, bottom, left, right]
    weight = full(b, 1 / math.prod(kernel), "Float32", [channels, 1, *kernel])
    return b("ttnn.conv2d", x, weight, None, type=op.results[0].type, conv2d_config=None, **geometry)


# --- largest elements of windows -----------------------------------------------------------------------


@workaround("ttnn.max_pool2d", "ttnn.max_pool2d_with_indices")
def max_pooling_of_float32(op: Op, b: Builder) -> list[Value] | None:
    """The float32 elements of each window are gathered, and their maximum is taken:

    "Only BFLOAT16 supported for now"
    """
    (x,), a = op.operands, ods.attrs_of(op)
    if legality.takes(op, x):
        return None
    places = _places(a)
    batch, channels, (elements, count) = a["batch_size"], a["channels"], places.shape
    index = _constant(b, places.reshape(1, 1, elements * count, 1))
    index = make(b, "repeat", index, repeat_dims=[batch, 1, 1, channels])
    x = reshape(b, x, [batch, 1, a["input_height"] * a["input_width"], channels])
    windows = [batch, elements, count, channels]
    x, index = reshape(b, make(b, "gather", x, index, dim=2), windows), reshape(b, index, windows)
    largest = make(b, "max", x, dim_arg=[1], keep_dim=True)
    found = [largest] if len(op.results) == 1 else [largest, _place(b, x, index, largest)]
    return [reshape(b, v, shape(r)) for v, r in zip(found, op.results, strict=True)]


def _places(a: Attrs) -> np.ndarray:
    """Positions in an image, of shape (elements of a window, windows). A position in the padding is replaced by the
    first element of the window that is not in the padding, which does not change the maximum."""
    rows, columns = (_line(a, dim) for dim in (0, 1))
    flat = rows[:, None, :, None] * a["input_width"] + columns[None, :, None, :]
    return flat.reshape(rows.shape[0] * columns.shape[0], -1).astype(np.int32)


def _line(a: Attrs, dim: int) -> np.ndarray:
    """The same along one dimension."""
    kernel, stride, dilation = (a[name][dim] for name in ("kernel_size", "stride", "dilation"))
    size = a[("input_height", "input_width")[dim]]
    count = infer.window(size, kernel, stride, a["padding"][dim] + a["padding"][dim + 2], dilation)
    places = np.arange(kernel)[:, None] * dilation + np.arange(count) * stride - a["padding"][dim]
    inside = (places >= 0) & (places < size)
    return np.where(inside, places, np.take_along_axis(places, inside.argmax(0)[None], 0))


def _constant(b: Builder, values: np.ndarray) -> Value:
    kind = with_layout(list(values.shape), Layout("Int32", tiled=False, buffer="SystemMemory"))
    return b("ttnn.constant", type=kind, input=ir.DenseElementsAttr.get(values, type=kind.element_type))


def _place(b: Builder, x: Value, index: Value, largest: Value) -> Value:
    """The position of the maximum: the first of equal elements, or the last NaN. Positions are compared, and a NaN at
    position p counts as -1 - p."""
    is_nan = make(b, "ne", x, x, dtype="BFloat16")
    is_largest = make(b, "eq", x, largest, dtype="BFloat16")
    behind = make(b, "where", is_largest, index, full(b, 2**31 - 1, "Int32"), dtype="Int32")
    before = make(b, "subtract", full(b, -1, "Int32"), index)
    found = make(b, "min", make(b, "where", is_nan, before, behind, dtype="Int32"), dim_arg=[1], keep_dim=True)
    decoded = make(b, "subtract", full(b, -1, "Int32"), found)
    return make(b, "maximum", found, decoded)


@workaround("ttnn.max_pool2d_with_indices")
def positions_of_max_pooling(op: Op, b: Builder) -> list[Value] | None:
    """Results are in row-major layout. Positions have the type UINT16, in large images UINT32. For others, the check
    says:

    "layout is ROW_MAJOR, not TILE"
    "dtype is UINT16, not INT32"
    """
    values, places = op.results
    if layout_of(places).dtype != "Int32":
        return None
    a = ods.attrs_of(op)
    types = [
        with_layout(shape(values), Layout(layout_of(values).dtype, tiled=False)),
        with_layout(shape(places), Layout(legality.places(a["input_height"], a["input_width"]), tiled=False)),
    ]
    pooled, found = b("ttnn.max_pool2d_with_indices", *op.operands, type=types, **a)
    return [pooled, typecast(b, found, "Int32", tiled=False)]


# --- convolutions ----------------------------------------------------------------------------------------


@workaround("ttnn.conv2d")
def narrow_convolutions(op: Op, b: Builder) -> Value | None:
    """Images with one or two columns are padded to three columns, and the result is cropped:

    "Reader indices buffer page size 68 exceeds worst-case CB size 64 (config tensor layout changed?)"
    """
    operands, a = ods.operands_of(op), ods.attrs_of(op)
    height, width = windows.sliding_size(a)
    if not windows.too_narrow(a):
        return None
    wide = 3
    a["padding"] = [*a["padding"][:3], a["padding"][3] + (wide - width) * a["stride"][1]]
    sizes = shape(op.results[0])
    rows = a["batch_size"] * height
    kind = with_layout([1, 1, rows * wide, sizes[-1]], layout_of(op.results[0]))
    found = reshape(b, b("ttnn.conv2d", *operands.values(), type=kind, **a), [1, rows, wide, sizes[-1]])
    return reshape(b, slices(b, found, 2, 0, width), sizes)


@workaround("ttnn.conv2d")
def depthwise_convolutions_along_a_row(op: Op, b: Builder) -> Value | None:
    """A bias of zero makes the library prepare these weights like others:

    "The width of the first tensor must be equal to the height of the second tensor. Mismatch: width=3 height=32"
    """
    operands, a = ods.operands_of(op), ods.attrs_of(op)
    if not windows.one_row_per_channel(a, operands["bias"]):
        return None
    bias = full(b, 0.0, layout_of(op.results[0]).dtype, [1, 1, 1, a["out_channels"]])
    return b("ttnn.conv2d", operands["input"], operands["weight"], bias, type=op.results[0].type, **a)


@workaround("ttnn.conv3d")
def channels_of_volumes(op: Op, b: Builder) -> Value | None:
    """Channels are padded with zeros to whole tiles; otherwise the channels of the result would be padded. The weights
    of a group have zeros for the channels of other groups:

    "Input channels (4) must be divisible by C_in_block (16)"
    "Weight patch size must match input patch size. got 36 vs 72"
    """
    operands, a = ods.operands_of(op), ods.attrs_of(op)
    channels, outputs = a["in_channels"], a["out_channels"]
    missing, more = -channels % TILE, -outputs % TILE
    if not missing and not more and a["groups"] == 1:
        return None
    x, weight, bias = operands["input"], operands["weight"], operands["bias"]
    weight = reshape(b, weight, [math.prod(a["kernel_size"]), channels // a["groups"], outputs])
    if a["groups"] > 1:
        weight = make(b, "repeat", weight, repeat_dims=[1, a["groups"], 1])
        sides = (_groups(b, a["groups"], size, dim) for size, dim in ((channels, 1), (outputs, 2)))
        own = make(b, "eq", *sides, dtype="BFloat16")
        weight = make(b, "multiply", weight, typecast(b, own, layout_of(weight).dtype))
    if missing:
        x = make(b, "pad", x, tiled=False, padding=[0] * 9 + [missing], value=0.0)
    if missing or more:
        weight = make(b, "pad", weight, padding=[0, 0, 0, missing, 0, more], value=0.0)
    if more and bias is not None:
        bias = make(b, "pad", bias, padding=[0, 0, 0, more], value=0.0)
    a |= {"in_channels": channels + missing, "out_channels": outputs + more, "groups": 1}
    weight = reshape(b, weight, [math.prod(shape(weight)[:2]), outputs + more])
    found = make(b, "conv3d", x, weight, bias, tiled=False, **a)
    return slices(b, found, 4, 0, outputs)


def _groups(b: Builder, groups: int, size: int, dim: int) -> Value:
    """The group of each of `size` channels, along one of three dimensions."""
    kind = with_layout([groups], Layout("Float32", tiled=False))
    number = b("ttnn.arange", type=kind, start=0.0, end=float(groups), step=1.0)
    each = make(b, "repeat", make(b, "reshape", number, shape=[groups, 1]), repeat_dims=[1, size // groups])
    return make(b, "reshape", each, shape=[size if d == dim else 1 for d in range(3)])
