"""reduce_window: pooling over any dimensions, two at a time, and cumulative ops along one; the gradient of pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch_mlir import ir

from tt_torch.mlir import infer, ods
from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.stablehlo import attrs
from tt_torch.mlir.stablehlo.bodies import combining, only_op
from tt_torch.mlir.ttir.from_stablehlo.arranging import crop, padded, part, repeated, spread
from tt_torch.mlir.ttir.from_stablehlo.creation import full, splat_of
from tt_torch.mlir.ttir.from_stablehlo.reduction import COMBINED, REDUCTIONS, combined, neutral
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.ttir.from_stablehlo.sliding import NCHW, flatten, unflatten
from tt_torch.mlir.types import Attrs, Op, Value

SCANS = {op.facts["scan_of"]: name for name, op in ods.OPS.items() if "scan_of" in op.facts}


@dataclass(frozen=True)
class Span:
    """A window along one dimension: how many elements it takes, the step to the next window, the distance between its
    elements, and the padding at the beginning and at the end.

    Span(3, 2, 1, 0, 1) has two positions over 4 elements: 0, 1, 2 and 2, 3, padding.
    """

    size: int
    stride: int
    dilation: int
    low: int
    high: int

    def slides(self) -> bool:
        return (self.size, self.stride, self.low, self.high) != (1, 1, 0, 0)


def spans(op: Op) -> list[Span] | None:
    """The windows of all dimensions; None if negative padding crops, or if there are gaps between elements."""
    pads = attrs.ints(op, "padding")
    if min(pads or [0]) < 0 or any(d != 1 for d in attrs.ints(op, "base_dilations") or []):
        return None
    return _spans(op, pads)


def _spans(op: Op, pads: Sequence[int] | None) -> list[Span]:
    """The windows of all dimensions. `pads` has (low, high) of each dimension in turn, or is None for no padding."""
    sizes = attrs.ints(op, "window_dimensions")
    ones = [1] * len(sizes)
    strides, dilations = (attrs.ints(op, f"window_{name}") or ones for name in ("strides", "dilations"))
    pads = pads or [0] * 2 * len(sizes)
    return [Span(*v) for v in zip(sizes, strides, dilations, pads[::2], pads[1::2], strict=True)]


@RULES.rewrites("stablehlo.reduce_window")
def reduce_window(op: Op, b: Builder) -> Value | list[Value] | None:
    """Maxima, sums, ... of windows: with a window of 2 and stride 2, the sums of 1, 2, 3, 4 are 3, 7."""
    names, count = combining(op), len(op.results)
    if names is None or not COMBINED.keys() >= set(names):
        return None
    size, operands = shape(op.results[0]), list(op.operands)
    if 0 in size:
        return [repeated(b, initial, size) for initial in operands[count:]]
    return [_reduced(op, b, x, i, name) for x, i, name in zip(operands, operands[count:], names, strict=False)]


def _reduced(op: Op, b: Builder, x: Value, initial: Value, combine: str) -> Value:
    """One result of a `reduce_window`: as a cumulative op, as pooling of images, or else by _any_window."""
    windows, target = spans(op), REDUCTIONS.get(combine, "")
    logic = combine in ("and", "or", "xor")
    if windows is None or logic or 0 in shape(x) or not neutral(target, splat_of(initial), dtype(x), False):
        return _any_window(op, b, x, initial, combine)
    sliding = [d for d, window in enumerate(windows) if window.slides()]
    if len(sliding) == 1 and (forward := _runs(windows[sliding[0]], shape(x)[sliding[0]])) is not None:
        return _running(b, x, sliding[0], combine, forward)
    dilated = any(windows[d].dilation > 1 for d in sliding)
    if combine == "multiply" or (combine == "add" and dilated) or not isinstance(dtype(x), ir.FloatType):
        return _any_window(op, b, x, initial, combine)
    if combine == "minimum":
        return b("ttir.neg", _pooled(b, b("ttir.neg", x), "maximum", sliding, windows))
    return _pooled(b, x, combine, sliding, windows)


def _any_window(op: Op, b: Builder, x: Value, initial: Value, combine: str) -> Value:
    """Windows of any form. The padding has the initial value, which is also combined once with each result.

    Sums of windows of 2 over 1, 2, 3 with the initial value 10 are 13, 15.
    """
    pads = attrs.ints(op, "padding") or [0] * 2 * len(shape(x))
    x = spread(b, x, attrs.ints(op, "base_dilations") or [1] * len(shape(x)), initial)
    x = padded(b, crop(b, x, pads), [max(0, p) for p in pads], initial)
    for dim, window in enumerate(_spans(op, None)):
        x = _along(b, x, dim, combine, window)
    return combined(b, combine, x, b("ttir.reshape", initial, shape=[1] * len(shape(x))))


def _along(b: Builder, x: Value, dim: int, combine: str, window: Span) -> Value:
    """Windows along one dimension. Two windows of 1, 2, 4, ... elements make one of twice the size. The windows whose
    sizes add up to the wanted size make the wanted window. A window of 5 elements is made of 1 element and of 4.
    """
    positions = infer.window(shape(x)[dim], window.size, 1, 0, window.dilation)
    result, begin, size = None, 0, 1
    while size <= window.size:
        if window.size & size:
            one = part(b, x, dim, begin * window.dilation, begin * window.dilation + positions)
            result, begin = one if result is None else combined(b, combine, result, one), begin + size
        size *= 2
        if size <= window.size:
            step, length = size // 2 * window.dilation, shape(x)[dim]
            x = combined(b, combine, part(b, x, dim, 0, length - step), part(b, x, dim, step, length))
    if window.stride == 1:
        return result
    steps = [window.stride if d == dim else 1 for d in range(len(shape(result)))]
    return b("ttir.slice_static", result, begins=[0] * len(steps), ends=shape(result), step=steps)


def _runs(window: Span, size: int) -> bool | None:
    """Whether windows reach from each position to the start (True) or to the end (False); None for other windows.

    Over 4 elements, windows of 4 elements with a padding of (3, 0) reach to the start.
    """
    if (window.size, window.stride, window.dilation) != (size, 1, 1):
        return None
    return {(size - 1, 0): True, (0, size - 1): False}.get((window.low, window.high))


def _running(b: Builder, x: Value, dim: int, combine: str, forward: bool) -> Value:
    """A cumulative op. If TTNN has no such op, it is computed over the last 1, 2, 4, ... elements.

    Maxima of 3, 1, 4, 1 forward are 3, 3, 4, 4, and backward 4, 4, 4, 1.
    """
    if forward and combine in SCANS:
        return b(SCANS[combine], x, dim=dim)
    size, reach = shape(x)[dim], 1
    while reach < size:
        both = b(f"ttir.{combine}", part(b, x, dim, 0, size - reach), part(b, x, dim, reach, size))
        ends = [part(b, x, dim, 0, reach), both] if forward else [both, part(b, x, dim, size - reach, size)]
        x, reach = b("ttir.concat", ends, dim=dim), 2 * reach
    return x


def _pooled(b: Builder, x: Value, combine: str, sliding: Sequence[int], windows: Sequence[Span]) -> Value:
    """Maxima or sums, over two dimensions at a time. The library refuses padding of more than half a window, such as 2
    beside a window of 3, so this padding is a separate op."""
    if any(2 * max(windows[d].low, windows[d].high) > windows[d].size for d in sliding):
        pads = [p if d in sliding else 0 for d, w in enumerate(windows) for p in (w.low, w.high)]
        x = padded(b, x, pads, -math.inf if combine == "maximum" else 0.0)
        windows = [Span(w.size, w.stride, w.dilation, 0, 0) for w in windows]
    for i in range(0, len(sliding), 2):
        x = _pooled_over(b, x, combine, sliding[i : i + 2], windows)
    return x


def _pooled_over(b: Builder, x: Value, combine: str, dims: Sequence[int], windows: Sequence[Span]) -> Value:
    """Maxima or sums over one or two dimensions. A sum is the average times the size of the window."""
    images = Images(shape(x), dims)
    pair = [Span(1, 1, 1, 0, 0)] * (2 - len(dims)) + [windows[d] for d in dims]
    sizes = images.attributes(pair) | {
        "padding": [p for end in ("low", "high") for p in (getattr(w, end) for w in pair)]
    }
    flat = flatten(b, images.of(b, x), NCHW)
    if combine == "maximum":
        flat = b("ttir.max_pool2d", flat, **sizes)
    else:
        flat = b("ttir.avg_pool2d", flat, **sizes)
        flat = b("ttir.multiply", flat, full(b, [1, 1, 1, 1], dtype(x), math.prod(w.size for w in pair)))
    out = [
        infer.window(n, w.size, w.stride, w.low + w.high, w.dilation)
        for n, w in zip(images.nchw[2:], pair, strict=True)
    ]
    pooled = unflatten(b, flat, [images.nchw[0], *out, images.nchw[1]], NCHW)
    return images.back(b, pooled, out[2 - len(dims) :])


class Images:
    """A tensor seen as (N, C, H, W). `dims` are H and W, or only W; C is the last of the other dimensions."""

    def __init__(self, size: Sequence[int], dims: Sequence[int]) -> None:
        others = [d for d in range(len(size)) if d not in dims]
        self.others = [size[d] for d in others]
        self.order = [*others, *dims]
        edges = [1] * (2 - len(dims)) + [size[d] for d in dims]
        self.nchw = [math.prod(self.others[:-1]), *(self.others[-1:] or [1]), *edges]

    def attributes(self, pair: Sequence[Span]) -> Attrs:
        batch, channels, height, width = self.nchw
        sizes = {"batch_size": batch, "input_height": height, "input_width": width, "channels": channels}
        names = (("kernel_size", "size"), ("stride", "stride"), ("dilation", "dilation"))
        return sizes | {name: [getattr(w, field) for w in pair] for name, field in names}

    def of(self, b: Builder, x: Value) -> Value:
        if self.order != sorted(self.order):
            x = b("ttir.permute", x, permutation=self.order)
        edges = shape(x)[len(self.others) :]
        size = [*self.nchw[:2], *[1] * (2 - len(edges)), *edges]
        return x if shape(x) == size else b("ttir.reshape", x, shape=size)

    def back(self, b: Builder, x: Value, edges: Sequence[int]) -> Value:
        size = [*self.others, *edges]
        x = x if shape(x) == size else b("ttir.reshape", x, shape=size)
        if self.order == sorted(self.order):
            return x
        return b("ttir.permute", x, permutation=[self.order.index(d) for d in range(len(size))])


@RULES.rewrites("stablehlo.select_and_scatter")
def select_and_scatter(op: Op, b: Builder) -> Value | None:
    """The gradient of max pooling over one or two dimensions. That of a window goes to the place of its first maximum.

    Gradients 10, 20 of windows of 2 with stride 2 over 1, 2, 4, 3 give 0, 10, 20, 0.
    """
    x, source, initial = op.operands
    windows = spans(op)
    selected, scattered = (only_op(region) for region in op.operation.regions)
    if (selected, scattered) != ("GE", "add") or splat_of(initial) != 0 or windows is None:
        return None
    dims = [d for d, window in enumerate(windows) if window.slides()]
    if not 1 <= len(dims) <= 2 or any(windows[d].low != windows[d].high for d in dims):
        return None
    images = Images(shape(x), dims)
    pair = [Span(1, 1, 1, 0, 0)] * (2 - len(dims)) + [windows[d] for d in dims]
    sizes = images.attributes(pair) | {"padding": [w.low for w in pair] * 2}
    _, places = b("ttir.max_pool2d_with_indices", flatten(b, images.of(b, x), NCHW), **sizes)
    source = images.of(b, source)
    batch, channels, *edges = shape(source)
    places = unflatten(b, places, [batch, *edges, channels], NCHW)
    rows, area = batch * channels, math.prod(images.nchw[2:])
    places, source = (b("ttir.reshape", v, shape=[rows, math.prod(edges)]) for v in (places, source))
    zeros = full(b, [rows, area], dtype(x), 0)
    added = b("ttir.scatter", zeros, places, source, dim=1, scatter_reduce_type="Sum")
    return images.back(b, b("ttir.reshape", added, shape=images.nchw), [shape(x)[d] for d in dims])
