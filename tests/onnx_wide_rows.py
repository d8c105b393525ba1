"""The nodes that random ONNX models have: one function per family. Forms in which ONNX Runtime and ONNX's evaluator
differ are not drawn, such as sums of integers that leave their type, and numbers of OneHot out of range."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from onnx.numpy_helper import from_array
from onnx_drawing import FLOATS, INTEGERS, KINDS, Drawn

SINGLE = ("float32",)
NUMBERS = (*FLOATS, *INTEGERS)
WIDE = ("float32", "float32", "int32", "int64")
UNARY = (
    "Abs Neg Ceil Floor Round Sin Cos Asinh Atan Erf Sigmoid Tanh Relu Softplus Softsign Sign HardSwish Mish "
    "IsNaN IsInf Elu Celu Selu LeakyRelu ThresholdedRelu HardSigmoid Identity"
).split()
OF_POSITIVE = "Sqrt Exp Log Sinh Cosh Acosh Reciprocal Gelu".split()
BINARY = "Add Sub Mul Max Min Equal Less Greater LessOrEqual GreaterOrEqual Sum Mean PRelu".split()
REDUCED = "ReduceSum ReduceMean ReduceL1 ReduceL2 ReduceLogSumExp ReduceSumSquare".split()
ENDS = "ReduceMax ReduceMin".split()


def unary(op: str, m: Drawn) -> None:
    m.add(op, m.any(NUMBERS if op in ("Abs", "Neg", "Sign", "Relu", "Identity") else SINGLE))


def of_positive(op: str, m: Drawn) -> None:
    """The operand has numbers from 1 to 4, where all these functions are defined and small."""
    m.add(op, m.given(m.rng.uniform(1, 4, m.shape()).astype("float32")))


def binary(op: str, m: Drawn) -> None:
    x = m.any(FLOATS if op in ("Sum", "Mean", "PRelu") else NUMBERS, low=1 if op == "PRelu" else 0)
    m.add(op, x, m.beside(x))


def divided(m: Drawn) -> None:
    """No divisor is 0 or -1: the specification leaves these results of integers open."""
    x = m.any(NUMBERS)
    y = m.numbers(m.values[x].shape, m.values[x].dtype.name)
    op = m.draw.choice(("Div", "Mod"))
    more = {"fmod": 1 if y.dtype.kind == "f" else m.draw.randint(0, 1)} if op == "Mod" else {}
    m.add(op, x, m.given(np.where(np.abs(y) < 2, 3, y).astype(y.dtype)), **more)


def bits(m: Drawn) -> None:
    x = m.fresh(m.shape(), m.draw.choice([kind for kind in INTEGERS if kind.startswith("u")]))
    op = m.draw.choice(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift"))
    if op == "BitShift":
        count = m.numbers(m.values[x].shape, m.values[x].dtype.name) % 8
        return m.add(op, x, m.given(count), direction=m.draw.choice(("LEFT", "RIGHT")))
    m.add(op, x, *(() if op == "BitwiseNot" else (m.beside(x),)))


def logic(m: Drawn) -> None:
    x, op = m.any(("bool",)), m.draw.choice(("And", "Or", "Xor", "Not"))
    m.add(op, x, *(() if op == "Not" else (m.beside(x),)))


def chosen(m: Drawn) -> None:
    x = m.any()
    m.add("Where", m.fresh(m.values[x].shape, "bool"), x, m.beside(x))


def clipped(m: Drawn) -> None:
    x = m.any(NUMBERS)
    low, high = (m.constant(n, m.values[x].dtype.name) for n in (m.draw.randint(0, 2), m.draw.randint(1, 5)))
    m.add("Clip", x, *m.draw.choice(((low, high), ("", high), (low,))))


def cast(m: Drawn) -> None:
    """The operand has numbers that all types have."""
    x = m.given(m.rng.integers(0, 9, m.shape()).astype(m.draw.choice(KINDS)))
    m.add("Cast", x, to=from_array(np.zeros(0, m.draw.choice(KINDS))).data_type)


def reduced(op: str, m: Drawn) -> None:
    kinds = (*FLOATS, "int32", "int64", *(("uint8", "uint32", "uint64") if op in ENDS else ()))
    x = (
        m.any(FLOATS)
        if op in ("ReduceL2", "ReduceLogSumExp", "ReduceMean")
        else m.fresh(m.shape(), m.draw.choice(kinds))
    )
    axes, more = m.axes(x), {"keepdims": m.draw.randint(0, 1)}
    if axes and (op == "ReduceSum" or m.opset >= 18):
        return m.add(op, x, m.constant(axes, "int64"), **more)
    m.add(op, x, **more, **({"axes": axes} if axes else {}))


def places(m: Drawn) -> None:
    x = m.any(NUMBERS, 1)
    m.add(m.draw.choice(("ArgMax", "ArgMin")), x, axis=m.axis(x), select_last_index=m.draw.randint(0, 1))


def normalized(m: Drawn) -> None:
    x = m.any(SINGLE, 1)
    m.add(m.draw.choice(("Softmax", "LogSoftmax", "Hardmax")), x, axis=m.axis(x))


def running(m: Drawn) -> None:
    x = m.any(WIDE, 1)
    m.add("CumSum", x, m.constant(m.axis(x)), exclusive=m.draw.randint(0, 1), reverse=m.draw.randint(0, 1))


def largest(m: Drawn) -> None:
    x = m.any(WIDE, 1)
    axis = m.axis(x)
    count = m.constant([m.draw.randint(0, m.values[x].shape[axis])], "int64")
    m.add("TopK", x, count, count=2, axis=axis, largest=m.draw.randint(0, 1))


def joined(m: Drawn) -> None:
    x = m.any(low=1)
    axis, more = m.axis(x), []
    for _ in m.some(0, 2):
        sizes = list(m.values[x].shape)
        sizes[axis] = m.draw.randint(0, 3)
        more.append(m.fresh(sizes, m.values[x].dtype.name))
    m.add("Concat", x, *more, axis=axis)


def cut(m: Drawn) -> None:
    x = m.any(low=1)
    axis = m.axis(x)
    size = m.values[x].shape[axis]
    first = m.draw.randint(0, size)
    m.add("Split", x, m.constant([first, size - first], "int64"), count=2, axis=axis)


def repeated(m: Drawn) -> None:
    x = m.any(low=1)
    m.add("Tile", x, m.constant([m.draw.randint(0, 3) for _ in m.values[x].shape], "int64"))


def spread(m: Drawn) -> None:
    x = m.any()
    sizes = [n if n != 1 else m.draw.randint(1, 3) for n in m.values[x].shape]
    m.add("Expand", x, m.constant([*m.draw.choice(([], [2])), *sizes], "int64"))


def reshaped(m: Drawn) -> None:
    x, op = m.any(), m.draw.choice(("Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Shape", "Size"))
    rank = m.values[x].ndim
    if op == "Reshape":
        size = m.values[x].size
        m.add(op, x, m.constant(m.draw.choice(([-1], [size], [1, -1], [-1, 1])) if size else [0], "int64"), allowzero=1)
    elif op == "Flatten":
        m.add(op, x, axis=m.draw.randint(-rank, rank))
    elif op == "Transpose":
        m.add(op, x, **({"perm": m.draw.sample(range(rank), rank)} if rank else {}))
    else:
        ones = [i for i, n in enumerate(m.values[x].shape) if n == 1]
        axes = {"Squeeze": ones, "Unsqueeze": [m.draw.randint(-rank - 1, rank)]}.get(op, [])
        m.add(op, x, *([m.constant(axes, "int64")] if axes else []))


def sliced(m: Drawn) -> None:
    """An end that is the largest integer goes with a positive step: ONNX Runtime reads it otherwise with others."""
    x = m.any(low=1)
    axes = m.axes(x, least=1)
    steps = [m.draw.choice((1, 1, 2, 3, -1, -2)) for _ in axes]
    ends = [2**63 - 1 if step > 0 and m.draw.random() < 0.3 else m.draw.randint(-6, 6) for step in steps]
    m.add("Slice", x, *(m.constant(v, "int64") for v in ([m.draw.randint(-6, 6) for _ in axes], ends, axes, steps)))


def padded(m: Drawn) -> None:
    x, mode = m.any(low=1), m.draw.choice(("constant", "constant", "edge", "reflect"))
    most = [{"reflect": n - 1, "edge": 2 * min(n, 1)}.get(mode, 2) for n in m.values[x].shape]
    pads = [m.draw.randint(0, max(0, min(2, n))) for n in (*most, *most)]
    m.add("Pad", x, m.constant(pads, "int64"), mode=mode)


def gathered(m: Drawn) -> None:
    x = m.any(low=1)
    axis = m.axis(x)
    size = max(m.values[x].shape[axis], 1)
    sizes = [max(n, 1) for n in m.values[x].shape]
    sizes[axis] = m.draw.randint(1, 4)
    op = m.draw.choice(("Gather", "GatherElements"))
    numbers = m.rng.integers(-size, size, m.shape(0, 2) if op == "Gather" else sizes)
    m.add(op, x, (m.given if m.draw.random() < 0.6 else m.constant)(numbers), axis=axis)


def scattered(m: Drawn) -> None:
    """Without a reduction, no place is written twice."""
    x = m.any(NUMBERS, 1)
    shape, axis = m.values[x].shape, m.axis(x)
    sizes = [m.draw.randint(min(n, 1), n) for n in shape]
    reduction = m.draw.choice(("none", "add", "mul", "max", "min") if m.opset >= 18 else ("none", "add"))
    numbers = np.argsort(m.rng.random(shape), axis=axis)[tuple(slice(n) for n in sizes)]
    if reduction != "none":
        numbers = m.rng.integers(-shape[axis], max(shape[axis], 1 - shape[axis]), sizes)
    updates = m.fresh(sizes, m.values[x].dtype.name)
    m.add("ScatterElements", x, m.given(numbers), updates, axis=axis, reduction=reduction)


def one_hot(m: Drawn) -> None:
    count = m.draw.randint(1, 5)
    x = m.given(m.rng.integers(-count, count, m.shape(0, 2)))
    m.add("OneHot", x, m.constant(count), m.fresh([2], m.draw.choice(WIDE)), axis=-1)


def triangle(m: Drawn) -> None:
    x = m.any(low=2)
    m.add("Trilu", x, m.constant(m.draw.randint(-4, 4)), upper=m.draw.randint(0, 1))


def products(m: Drawn) -> None:
    kind, (a, b, c) = m.draw.choice((*WIDE, "uint32")), (m.draw.randint(1, 5) for _ in "abc")
    batch = m.shape(0, 2)
    shapes = m.draw.choice((([a, b], [b, c]), ([*batch, a, b], [b, c]), ([*batch, a, b], [*batch, b, c]), ([b], [b])))
    m.add("MatMul", *(m.fresh(shape, kind) for shape in shapes))


def integer_products(m: Drawn) -> None:
    """ONNX Runtime's sums of uint8 and int8 saturate on some processors, so numbers are small."""
    first, second, (a, b, c) = *m.draw.choices(("int8", "uint8"), k=2), *[[m.draw.randint(1, 5) for _ in "abc"]]
    m.add("MatMulInteger", m.fresh([a, b], first), m.fresh([b, c], second), m.fresh([], first), m.fresh([], second))


def quantized(m: Drawn) -> None:
    """A scale that is a power of 2, so no quotient is near the middle of two integers by rounding alone."""
    x, scale = m.any(SINGLE), m.constant(m.draw.choice((0.25, 0.5)), "float32")
    zero = m.constant(m.draw.randint(0, 5), m.draw.choice(("int8", "uint8")))
    m.add("QuantizeLinear", x, scale, zero)
    m.add("DequantizeLinear", m.results[-1], scale, zero)


ROWS: list[Callable[[Drawn], None]] = [
    *(partial(unary, op) for op in UNARY), *(partial(of_positive, op) for op in OF_POSITIVE),
    *(partial(binary, op) for op in BINARY), *(partial(reduced, op) for op in (*REDUCED, *ENDS)),
    *(divided, bits, logic, chosen, clipped, cast, places, normalized, running, largest) * 2,
    *(joined, cut, repeated, spread, reshaped, sliced, padded, gathered, scattered, one_hot, triangle) * 3,
    *(products, integer_products, quantized) * 2,
]  # fmt: skip
