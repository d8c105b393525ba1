"""The layers that random ONNX models have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx_drawing import Drawn

SINGLE = "float32"


def _sizes(m: Drawn, low: int, high: int, count: int) -> list[int]:
    return [m.draw.randint(low, high) for _ in range(count)]


def convolution(m: Drawn) -> None:
    rank, groups = m.draw.randint(1, 3), m.draw.choice((1, 1, 2))
    inputs, outputs = (groups * n for n in _sizes(m, 1, 3, 2))
    kernel = _sizes(m, 1, 3, rank)
    more = {"strides": _sizes(m, 1, 2, rank), "dilations": _sizes(m, 1, 2, rank), "pads": _sizes(m, 0, 2, 2 * rank)}
    bias = [m.fresh([outputs], SINGLE)] if m.draw.random() < 0.5 else []
    x = m.fresh([m.draw.randint(1, 2), inputs, *_sizes(m, 3, 8, rank)], SINGLE)
    m.add("Conv", x, m.fresh([outputs, inputs // groups, *kernel], SINGLE), *bias, group=groups, **more)


def transposed_convolution(m: Drawn) -> None:
    rank, groups = m.draw.randint(1, 3), m.draw.choice((1, 1, 2))
    inputs, outputs = groups * m.draw.randint(1, 2), m.draw.randint(1, 2)
    strides = _sizes(m, 1, 3, rank)
    more = {"pads": _sizes(m, 0, 1, 2 * rank), "output_padding": [m.draw.randint(0, n - 1) for n in strides]}
    x = m.fresh([m.draw.randint(1, 2), inputs, *_sizes(m, 2, 4, rank)], SINGLE)
    weight = m.fresh([inputs, outputs, *_sizes(m, 1, 3, rank)], SINGLE)
    m.add("ConvTranspose", x, weight, group=groups, strides=strides, **(more if m.draw.random() < 0.5 else {}))


def pool(m: Drawn) -> None:
    rank, op = m.draw.randint(1, 3), m.draw.choice(("MaxPool", "MaxPool", "AveragePool", "LpPool"))
    kernel = _sizes(m, 1, 3, rank)
    more = {
        "kernel_shape": kernel,
        "strides": _sizes(m, 1, 3, rank),
        "pads": [m.draw.randint(0, n - 1) for n in kernel * 2],
    }
    if op == "AveragePool":
        more["count_include_pad"] = m.draw.randint(0, 1)
    if op == "MaxPool":
        more |= {"ceil_mode": m.draw.randint(0, 1), "dilations": _sizes(m, 1, 2, rank)}
    kind = m.draw.choice((SINGLE, SINGLE, "int8", "uint8") if op == "MaxPool" else (SINGLE,))
    x = m.fresh([m.draw.randint(1, 2), m.draw.randint(1, 3), *_sizes(m, 4, 8, rank)], kind)
    m.add(op, x, count=2 if op == "MaxPool" and kind == SINGLE and m.draw.random() < 0.3 else 1, **more)


def global_pool(m: Drawn) -> None:
    x = m.fresh([2, m.draw.randint(1, 3), *_sizes(m, 3, 8, m.draw.randint(1, 3))], SINGLE)
    m.add(m.draw.choice(("GlobalAveragePool", "GlobalMaxPool")), x)


def normalization(m: Drawn) -> None:
    channels = m.draw.choice((2, 4))
    x = m.fresh([2, channels, *_sizes(m, 3, 8, m.draw.randint(1, 3))], SINGLE)
    op = m.draw.choice(("BatchNormalization", "InstanceNormalization", "LayerNormalization", "LRN", "LpNormalization"))
    scale, bias, mean = (m.fresh([channels], SINGLE) for _ in range(3))
    if op == "BatchNormalization":
        m.add(op, x, scale, bias, mean, m.given(m.rng.uniform(0.5, 2, channels).astype(SINGLE)))
    elif op == "InstanceNormalization":
        m.add(op, x, scale, bias)
    elif op == "LayerNormalization":
        axis = m.axis(x)
        m.add(op, x, m.fresh(m.values[x].shape[axis:], SINGLE), axis=axis)
    else:
        m.add(op, x, **({"size": m.draw.choice((1, 2, 3))} if op == "LRN" else {"axis": m.axis(x)}))


def resized(m: Drawn) -> None:
    rank, mode = m.draw.randint(1, 3), m.draw.choice(("nearest", "linear"))
    x = m.fresh([1, m.draw.randint(1, 2), *_sizes(m, 3, 6, rank)], SINGLE)
    sizes = m.constant([*m.values[x].shape[:2], *_sizes(m, 2, 9, rank)], "int64")
    places = m.draw.choice(("half_pixel", "asymmetric", "align_corners"))
    nearest = m.draw.choice(("floor", "ceil", "round_prefer_floor", "round_prefer_ceil"))
    m.add("Resize", x, "", "", sizes, mode=mode, coordinate_transformation_mode=places, nearest_mode=nearest)


def recurrent(m: Drawn) -> None:
    op = m.draw.choice(("RNN", "LSTM", "GRU"))
    gates = {"RNN": 1, "LSTM": 4, "GRU": 3}[op]
    direction = m.draw.choice(("forward", "reverse", "bidirectional"))
    count, (hidden, size, steps, batch) = 2 if direction == "bidirectional" else 1, _sizes(m, 1, 4, 4)
    weights = [m.constant(m.numbers([count, gates * hidden, n], SINGLE)) for n in (size, hidden)]
    more = {"linear_before_reset": m.draw.randint(0, 1)} if op == "GRU" else {}
    x = m.fresh([steps, batch, size], SINGLE)
    m.add(op, x, *weights, count=3 if op == "LSTM" else 2, hidden_size=hidden, direction=direction, **more)


def sampled(m: Drawn) -> None:
    x = m.fresh([2, m.draw.randint(1, 2), *_sizes(m, 2, 5, 2)], SINGLE)
    grid = m.given(m.rng.uniform(-1.3, 1.3, [2, *_sizes(m, 1, 4, 2), 2]).astype(SINGLE))
    mode = m.draw.choice(("linear", "nearest") if m.opset >= 20 else ("bilinear", "nearest"))
    padding = m.draw.choice(("zeros", "border", "reflection"))
    m.add("GridSample", x, grid, mode=mode, padding_mode=padding, align_corners=m.draw.randint(0, 1))


def summed(m: Drawn) -> None:
    equation = m.draw.choice(("ij,jk->ik", "bij,bjk->bik", "ij->ji", "ii->i", "ij,ij->", "i,j->ij", "abc,cd,de->abe"))
    sizes = dict(zip("abcdeijk", _sizes(m, 1, 4, 8), strict=True))
    terms = equation.split("->")[0].split(",")
    m.add("Einsum", *(m.fresh([sizes[c] for c in term], SINGLE) for term in terms), equation=equation)


def moved(m: Drawn) -> None:
    blocks = m.draw.randint(1, 2)
    if m.draw.random() < 0.5:
        m.add("SpaceToDepth", m.fresh([1, blocks, 4, 6], SINGLE), blocksize=2)
    else:
        m.add("DepthToSpace", m.fresh([1, 4 * blocks, 3, 2], SINGLE), blocksize=2, mode=m.draw.choice(("DCR", "CRD")))


def loss(m: Drawn) -> None:
    rows, classes, inner = m.draw.randint(1, 4), m.draw.randint(2, 4), _sizes(m, 1, 3, m.draw.randint(0, 2))
    x, target = m.fresh([rows, classes, *inner], SINGLE), m.given(m.rng.integers(0, classes, [rows, *inner]))
    op = m.draw.choice(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"))
    m.add(op, x, target, m.given(np.abs(m.numbers([classes], SINGLE)) + np.float32(0.5)),
          reduction=m.draw.choice(("none", "mean", "sum")))  # fmt: skip


LAYERS: list[Callable[[Drawn], None]] = [
    convolution, transposed_convolution, pool, pool, global_pool, normalization, normalization, resized, recurrent,
    sampled, summed, moved, loss,
]  # fmt: skip
