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
