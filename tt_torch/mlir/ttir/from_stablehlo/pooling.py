"""reduce_window: pooling over the last two dimensions, and cumulative sums."""

from __future__ import annotations

import math
from typing import Any

from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.ttir.from_stablehlo.creation import full, splat_of
from tt_torch.mlir.ttir.from_stablehlo.reduction import body_op
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.ttir.from_stablehlo.sliding import NCHW, flatten, unflatten


@RULES.rewrites("stablehlo.reduce_window")
def reduce_window(op: Any, b: Builder) -> Any:
    if len(op.results) != 1 or any(d != 1 for d in attrs.ints(op, "base_dilations") or [1]):
        return None
    x, combine = op.operands[0], body_op(op)
    window = attrs.ints(op, "window_dimensions")
    rank = len(window)
    ones = [1] * rank
    stride, dilation = attrs.ints(op, "window_strides") or ones, attrs.ints(op, "window_dilations") or ones
    pads = attrs.ints(op, "padding") or [0] * 2 * rank
    scanned = _scanned(shape(x), window, pads)
    if combine == "add" and scanned is not None and stride == dilation == ones and splat_of(op.operands[1]) == 0:
        return b("ttir.cumsum", x, dim=scanned)
    if rank not in (3, 4) or [*window[:2], *stride[:2]] != [1] * 4 or any(pads[:4]) or min(pads) < 0:
        return None
    if rank == 3:  # a height of one
        window, stride, dilation = ([*v[:2], 1, v[2]] for v in (window, stride, dilation))
        pads = [*pads[:4], 0, 0, *pads[4:]]
        x = b("ttir.reshape", x, shape=[*shape(x)[:2], 1, shape(x)[2]])
    sizes = {"kernel_size": window[2:], "stride": stride[2:], "dilation": dilation[2:], "padding": pads[4:]}
    pooled = _pool(op, b, x, combine, sizes)
    return pooled if pooled is None else b("ttir.reshape", pooled, shape=shape(op.results[0]))


@RULES.rewrites("stablehlo.select_and_scatter")
def select_and_scatter(op: Any, b: Builder) -> Any:
    """The gradient of max pooling over the last two dimensions: added up where the first maxima are."""
    x, source, initial = op.operands
    selected, scattered = (_only_compare(region) for region in op.operation.regions)
    window = attrs.ints(op, "window_dimensions") or []
    stride, pads = attrs.ints(op, "window_strides") or [1] * 4, attrs.ints(op, "padding") or [0] * 8
    top, bottom, left, right = pads[4:] or [0] * 4
    if (selected, scattered) != ("GE", "add") or splat_of(initial) != 0 or len(window) != 4:
        return None
    if [*window[:2], *stride[:2]] != [1] * 4 or any(pads[:4]) or (top, left) != (bottom, right) or min(pads) < 0:
        return None
    batch, channels, height, width = shape(x)
    sizes: dict[str, Any] = {"batch_size": batch, "input_height": height, "input_width": width, "channels": channels}
    sizes |= {"kernel_size": window[2:], "stride": stride[2:], "padding": [top, left] * 2, "dilation": [1, 1]}
    _, places = b("ttir.max_pool2d_with_indices", flatten(b, x, NCHW), **sizes)
    places = unflatten(b, places, [batch, *shape(source)[2:], channels], NCHW)
    count = shape(source)[2] * shape(source)[3]
    places, source = (b("ttir.reshape", v, shape=[batch * channels, count]) for v in (places, source))
    zeros = full(b, [batch * channels, height * width], dtype(x), 0)
    added = b("ttir.scatter", zeros, places, source, dim=1, scatter_reduce_type="Sum")
    return b("ttir.reshape", added, shape=shape(x))


def _only_compare(region: Any) -> str:
    """What the one op of a region does: a comparison's direction, else the op's name; "" when there are several."""
    ops = list(region.blocks[0].operations)
    if len(ops) != 2 or list(ops[0].operands) != list(region.blocks[0].arguments):
        return ""
    name = ops[0].operation.name
    return attrs.direction(ops[0]) if name == "stablehlo.compare" else name.split(".")[1]


def _scanned(sizes: list[int], window: list[int], pads: list[int]) -> int | None:
    """The dimension of which every position sees all before it, if it is the only one in the window."""
    wide = [d for d, w in enumerate(window) if w != 1]
    if len(wide) != 1:
        return None
    (dim,) = wide
    before = [0] * len(pads)
    before[2 * dim] = sizes[dim] - 1
    return dim if window[dim] == sizes[dim] and pads == before else None


def _pool(op: Any, b: Builder, x: Any, combine: str, sizes: dict[str, Any]) -> Any:
    """`sizes["padding"]` comes as top, bottom, left, right."""
    initial = splat_of(op.operands[1])
    top, bottom, left, right = sizes["padding"]
    sizes = sizes | {"padding": [top, left, bottom, right]}
    batch, channels, height, width = shape(x)
    sizes |= {"batch_size": batch, "input_height": height, "input_width": width, "channels": channels}
    if combine == "maximum" and initial == float("-inf"):
        pooled = b("ttir.max_pool2d", flatten(b, x, NCHW), **sizes)
    elif combine == "add" and initial == 0 and sizes["dilation"] == [1, 1]:
        average = b("ttir.avg_pool2d", flatten(b, x, NCHW), count_include_pad=True, **sizes)
        area = math.prod(sizes["kernel_size"])
        pooled = b("ttir.multiply", average, full(b, [1, 1, 1, 1], dtype(x), area))
    else:
        return None
    out_height, out_width = ([1, *shape(op.results[0])[2:]])[-2:]
    return unflatten(b, pooled, [batch, out_height, out_width, channels], NCHW)
