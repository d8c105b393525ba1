"""Convolutions of at most three spatial dimensions, with stride, padding, dilation on both sides, and groups."""

from __future__ import annotations

import itertools
import math

from torch_mlir import ir

from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.arranging import crop, flip, padded, spread
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.ttir.from_stablehlo.matmul import widened
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.types import Attrs, Op, Value

MOST_DIMENSIONS = 3  # apart from the batch and the features


@RULES.rewrites("stablehlo.convolution")
def convolution(op: Op, b: Builder) -> Value | None:
    """A convolution with channels last, as in TTNN. What TTNN's attributes cannot express is done to the operands."""
    if any(0 in shape(value) for value in (*op.operands, *op.results)):  # a sum of nothing
        return full(b, shape(op.results[0]), dtype(op.results[0]), 0)
    dims = attrs.convolution(op)
    spatial, kernel, out = (
        list(d) for d in (dims.input_spatial_dimensions, dims.kernel_spatial_dimensions, dims.output_spatial_dimensions)
    )
    if len(spatial) > MOST_DIMENSIONS:
        return None
    ones = [1] * max(1, len(spatial))
    channels_last = [dims.input_batch_dimension, *spatial, dims.input_feature_dimension]
    integers = isinstance(dtype(op.results[0]), ir.IntegerType)
    images, weight = widened(op, b) if integers else op.operands
    x = b("ttir.permute", images, permutation=channels_last)
    filters = [dims.kernel_output_feature_dimension, dims.kernel_input_feature_dimension, *kernel]
    weight = b("ttir.permute", weight, permutation=filters)
    if not spatial:  # one dimension of size 1
        batch, features = shape(x)
        x = b("ttir.reshape", x, shape=[batch, 1, features])
        weight = b("ttir.reshape", weight, shape=[*shape(weight), 1])
    weight = flip(b, weight, [2 + i for i, turned in enumerate(attrs.ints(op, "window_reversal") or []) if turned])
    x, groups = _groups(op, b, x)
    x = spread(b, x, [1, *(attrs.ints(op, "lhs_dilation") or ones), 1], 0)
    pads = attrs.ints(op, "padding") or [0, 0] * len(ones)
    x = crop(b, x, [0, 0, *pads, 0, 0])
    stride, dilation = attrs.ints(op, "window_strides") or ones, attrs.ints(op, "rhs_dilation") or ones
    window = {"padding": [max(0, p) for p in pads], "stride": stride, "dilation": dilation, "groups": groups}
    convolve = _of_integers if integers else (_conv1d, _conv2d, _conv3d)[len(ones) - 1]
    product = convolve(b, x, weight, window)
    order = [dims.output_batch_dimension, *out, dims.output_feature_dimension]
    product = b("ttir.reshape", product, shape=[shape(op.results[0])[d] for d in order])
    return b("ttir.permute", product, permutation=[order.index(d) for d in range(len(order))])


def _groups(op: Op, b: Builder, x: Value) -> tuple[Value, int]:
    """Batch groups as feature groups: each group of the batch makes a part of the output features.

    (batch 4, size 5, features 3) in 2 batch groups becomes (batch 2, size 5, features 6) in 2 feature groups.
    """
    groups, batches = attrs.integer(op, "feature_group_count"), attrs.integer(op, "batch_group_count")
    if batches == 1:
        return x, groups
    batch, *size, features = shape(x)
    x = b("ttir.reshape", x, shape=[batches, batch // batches, *size, features])
    x = b("ttir.permute", x, permutation=[1, *range(2, len(size) + 2), 0, len(size) + 2])
    return b("ttir.reshape", x, shape=[batch // batches, *size, batches * features]), batches


def _of_integers(b: Builder, x: Value, weight: Value, window: Attrs) -> Value:
    """A sum of matrix products, one for each place in the kernel. TTNN's convolutions take floats only.

    For a kernel of 3, these are x[:-2] @ w[0] + x[1:-1] @ w[1] + x[2:] @ w[2].
    `x` is (batch, sizes..., channels), and `weight` (features, channels of a group, kernel...).
    """
    x = padded(b, x, [0, 0, *window["padding"], 0, 0], 0)
    batch, *sizes, channels = shape(x)
    features, inner, *kernel = shape(weight)
    stride, dilation, groups = window["stride"], window["dilation"], window["groups"]
    ends = [size - d * (k - 1) for size, d, k in zip(sizes, dilation, kernel, strict=True)]
    weight = b("ttir.permute", weight, permutation=[*range(2, len(kernel) + 2), 1, 0])
    total: Value | None = None
    for place in itertools.product(*map(range, kernel)):
        first = [p * d for p, d in zip(place, dilation, strict=True)]
        last = [start + end for start, end in zip(first, ends, strict=True)]
        seen = b("ttir.slice_static", x, begins=[0, *first, 0], ends=[batch, *last, channels], step=[1, *stride, 1])
        outer = shape(seen)[:-1]
        rows = b("ttir.reshape", seen, shape=[math.prod(outer), groups, inner])
        step = [1] * len(shape(weight))
        ended = [*(p + 1 for p in place), inner, features]
        columns = b("ttir.slice_static", weight, begins=[*place, 0, 0], ends=ended, step=step)
        columns = b("ttir.reshape", columns, shape=[inner, groups, features // groups])
        operands = b("ttir.permute", rows, permutation=[1, 0, 2]), b("ttir.permute", columns, permutation=[1, 0, 2])
        product = b("ttir.matmul", *operands)
        total = product if total is None else b("ttir.add", total, product)
    return b("ttir.reshape", b("ttir.permute", total, permutation=[1, 0, 2]), shape=[*outer, features])


def _conv1d(b: Builder, x: Value, weight: Value, window: Attrs) -> Value:
    """A 1-D convolution as a 2-D convolution of images with height 1."""
    batch, length, channels = shape(x)
    out, inner, kernel = shape(weight)
    wider = {"padding": [0, 0, *window["padding"]]} | {key: [1, *window[key]] for key in ("stride", "dilation")}
    x = b("ttir.reshape", x, shape=[batch, 1, length, channels])
    return _conv2d(b, x, b("ttir.reshape", weight, shape=[out, inner, 1, kernel]), window | wider)


def _conv2d(b: Builder, x: Value, weight: Value, window: Attrs) -> Value:
    """Images of (batch, height, width, channels) are flattened to (1, 1, batch * height * width, channels) for TTNN."""
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
