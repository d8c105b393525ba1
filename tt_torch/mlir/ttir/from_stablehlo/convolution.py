"""Convolutions of one and two spatial dimensions, with stride, padding, dilation and groups."""

from __future__ import annotations

from typing import Any

from tt_torch.mlir.rules import Builder, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.ttir.from_stablehlo.sliding import flatten, unflatten


@RULES.rewrites("stablehlo.convolution")
def convolution(op: Any, b: Builder) -> Any:
    dims = attrs.convolution(op)
    spatial = list(dims.input_spatial_dimensions)
    transposed = any(d != 1 for d in attrs.ints(op, "lhs_dilation") or [1])
    if len(spatial) not in (1, 2) or transposed or attrs.integer(op, "batch_group_count") != 1:
        return None
    if any(attrs.ints(op, "window_reversal") or []) or min(attrs.ints(op, "padding") or [0]) < 0:
        return None
    kernel = list(dims.kernel_spatial_dimensions)
    weight_order = [dims.kernel_output_feature_dimension, dims.kernel_input_feature_dimension, *kernel]
    weight = b("ttir.permute", op.operands[1], permutation=weight_order)
    order = [dims.input_batch_dimension, *spatial, dims.input_feature_dimension]
    out = list(dims.output_spatial_dimensions)
    out_order = [dims.output_batch_dimension, *out, dims.output_feature_dimension]
    window = _window(op, len(spatial))
    if len(spatial) == 1:
        return _conv1d(op, b, weight, order, out_order, window)
    result_shape = [shape(op.results[0])[d] for d in out_order]
    product = _conv2d(b, flatten(b, op.operands[0], order), weight, [shape(op.operands[0])[d] for d in order], window)
    return unflatten(b, product, result_shape, out_order)


def _window(op: Any, spatial: int) -> dict[str, Any]:
    """Attributes of ttir.conv2d; one-dimensional windows get a height of one."""
    ones = [1] * spatial
    pads = attrs.ints(op, "padding") or [0] * 2 * spatial
    stride, dilation = attrs.ints(op, "window_strides") or ones, attrs.ints(op, "rhs_dilation") or ones
    if spatial == 1:
        pads, stride, dilation = [0, 0, *pads], [1, *stride], [1, *dilation]
    groups = attrs.integer(op, "feature_group_count")
    return {"padding": pads, "stride": stride, "dilation": dilation, "groups": groups}


def _conv2d(b: Builder, x: Any, weight: Any, nhwc: list[int], window: dict[str, Any]) -> Any:
    batch, height, width, channels = nhwc
    out, _, *kernel = shape(weight)
    sizes = {"batch_size": batch, "input_height": height, "input_width": width}
    return b("ttir.conv2d", x, weight, **sizes, in_channels=channels, out_channels=out, kernel_size=kernel, **window)


def _conv1d(op: Any, b: Builder, weight: Any, order: list[int], out_order: list[int], window: dict[str, Any]) -> Any:
    """As a 2-D convolution over images of height one."""
    batch, length, channels = (shape(op.operands[0])[d] for d in order)
    x = b("ttir.permute", op.operands[0], permutation=order)
    x = b("ttir.reshape", x, shape=[1, 1, batch * length, channels])
    out, inner, kernel = shape(weight)
    weight = b("ttir.reshape", weight, shape=[out, inner, 1, kernel])
    product = _conv2d(b, x, weight, [batch, 1, length, channels], window)
    product = b("ttir.reshape", product, shape=[shape(op.results[0])[d] for d in out_order])
    return b("ttir.permute", product, permutation=[out_order.index(d) for d in range(3)])
