"""Convolutions of one to three spatial dimensions, with stride, padding, dilation on both sides, and groups."""

from __future__ import annotations

import math

from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.arranging import crop, flip, spread
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Attrs, Op, Value


@RULES.rewrites("stablehlo.convolution")
def convolution(op: Op, b: Builder) -> Value | None:
    """A convolution with channels last, as in TTNN. What TTNN's attributes cannot express is done to the operands."""
    if any(0 in shape(value) for value in (*op.operands, *op.results)):  # a sum of nothing
        return full(b, shape(op.results[0]), dtype(op.results[0]), 0)
    dims = attrs.convolution(op)
    spatial, kernel, out = (
        list(d) for d in (dims.input_spatial_dimensions, dims.kernel_spatial_dimensions, dims.output_spatial_dimensions)
    )
    if len(spatial) not in (1, 2, 3):
        return None
    ones = [1] * len(spatial)
    channels_last = [dims.input_batch_dimension, *spatial, dims.input_feature_dimension]
    x = b("ttir.permute", op.operands[0], permutation=channels_last)
    filters = [dims.kernel_output_feature_dimension, dims.kernel_input_feature_dimension, *kernel]
    weight = b("ttir.permute", op.operands[1], permutation=filters)
    weight = flip(b, weight, [2 + i for i, turned in enumerate(attrs.ints(op, "window_reversal") or []) if turned])
    x, groups = _groups(op, b, x)
    x = spread(b, x, [1, *(attrs.ints(op, "lhs_dilation") or ones), 1], 0.0)
    pads = attrs.ints(op, "padding") or [0, 0] * len(spatial)
    x = crop(b, x, [0, 0, *pads, 0, 0])
    stride, dilation = attrs.ints(op, "window_strides") or ones, attrs.ints(op, "rhs_dilation") or ones
    window = {"padding": [max(0, p) for p in pads], "stride": stride, "dilation": dilation, "groups": groups}
    product = (_conv1d, _conv2d, _conv3d)[len(spatial) - 1](b, x, weight, window)
    order = [dims.output_batch_dimension, *out, dims.output_feature_dimension]
    product = b("ttir.reshape", product, shape=[shape(op.results[0])[d] for d in order])
    return b("ttir.permute", product, permutation=[order.index(d) for d in range(len(order))])


def _groups(op: Op, b: Builder, x: Value) -> tuple[Value, int]:
    """Batch groups as feature groups: each group of the batch makes a part of the output features."""
    groups, batches = attrs.integer(op, "feature_group_count"), attrs.integer(op, "batch_group_count")
    if batches == 1:
        return x, groups
    batch, *size, features = shape(x)
    x = b("ttir.reshape", x, shape=[batches, batch // batches, *size, features])
    x = b("ttir.permute", x, permutation=[1, *range(2, len(size) + 2), 0, len(size) + 2])
    return b("ttir.reshape", x, shape=[batch // batches, *size, batches * features]), batches


def _conv1d(b: Builder, x: Value, weight: Value, window: Attrs) -> Value:
    """A 1-D convolution as a 2-D convolution of images with height 1."""
    batch, length, channels = shape(x)
    out, inner, kernel = shape(weight)
    wider = {"padding": [0, 0, *window["padding"]]} | {key: [1, *window[key]] for key in ("stride", "dilation")}
    x = b("ttir.reshape", x, shape=[batch, 1, length, channels])
    return _conv2d(b, x, b("ttir.reshape", weight, shape=[out, inner, 1, kernel]), window | wider)


def _conv2d(b: Builder, x: Value, weight: Value, window: Attrs) -> Value:
    batch, height, width, channels = shape(x)
    out, _, *kernel = shape(weight)
    x = b("ttir.reshape", x, shape=[1, 1, batch * height * width, channels])
    sizes = {"batch_size": batch, "input_height": height, "input_width": width}
    return b("ttir.conv2d", x, weight, **sizes, in_channels=channels, out_channels=out, kernel_size=kernel, **window)


def _conv3d(b: Builder, x: Value, weight: Value, window: Attrs) -> Value:
    """TTNN's conv3d has equal padding on both sides and no dilation, and takes the filters as columns of a matrix."""
    weight = spread(b, weight, [1, 1, *window.pop("dilation")], 0.0)
    low, high = window["padding"][::2], window["padding"][1::2]
    if low != high:
        x = b("ttir.pad", x, padding=[0, 0, *window["padding"], 0, 0], value=0.0)
        low = [0, 0, 0]
    batch, depth, height, width, channels = shape(x)
    out, _, *kernel = shape(weight)
    matrix = b("ttir.permute", weight, permutation=[2, 3, 4, 1, 0])
    matrix = b("ttir.reshape", matrix, shape=[math.prod(shape(matrix)[:4]), out])
    sizes = {"batch_size": batch, "input_depth": depth, "input_height": height, "input_width": width}
    window = window | {"padding": low, "in_channels": channels, "out_channels": out, "kernel_size": kernel}
    return b("ttir.conv3d", x, matrix, **sizes, **window)
