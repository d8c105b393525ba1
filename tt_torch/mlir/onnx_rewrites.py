"""Nodes of ONNX models that torch-mlir has no rule for, or a wrong one, written as plain nodes by their definitions.

The shapes of all values are known here, and the values of operands that decide shapes and axes are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tt_torch.mlir.onnx_contractions import CONTRACTIONS
from tt_torch.mlir.onnx_corrections import FLOATS, UNSIGNED, refill, refused
from tt_torch.mlir.onnx_determinants import determinant
from tt_torch.mlir.onnx_features import FEATURES
from tt_torch.mlir.onnx_nodes import Facts, Nodes, full_name
from tt_torch.mlir.onnx_optimizers import OPTIMIZERS
from tt_torch.mlir.onnx_parts import PARTS
from tt_torch.mlir.onnx_places import PLACES
from tt_torch.mlir.onnx_pools import POOLS
from tt_torch.mlir.onnx_powers import power
from tt_torch.mlir.onnx_quantized import QUANTIZED
from tt_torch.mlir.onnx_recurrent import recurrent
from tt_torch.mlir.onnx_reductions import REDUCTIONS
from tt_torch.mlir.onnx_sampling import SAMPLING
from tt_torch.mlir.onnx_scans import old_scan
from tt_torch.mlir.onnx_scattering import SCATTERING
from tt_torch.mlir.onnx_sequences import SEQUENCES

if TYPE_CHECKING:
    import onnx

AXIS_IS_ONE = 13  # the first opset in which Hardmax is along one dimension
AXIS_IS_OPERAND = 20  # the first opset in which the axis of DFT is no attribute
SIGNAL_DIMENSIONS = 3  # of a signal: signals, elements, and the parts of numbers
SLOPES_ARE_BROADCAST = 7  # the first opset in which PRelu broadcasts its slopes like other operands


def rewrite(model: onnx.ModelProto, rules: Rules | None = None) -> None:
    """Replaces the nodes of the graph for which there is a rule. A node stays if its rule does not cover its form."""
    from onnx.shape_inference import infer_shapes

    rules = RULES if rules is None else rules
    if not any(full_name(node) in rules for node in model.graph.node):
        return
    facts = Facts(infer_shapes(model, data_prop=True))
    made: list[onnx.NodeProto] = []
    for node in model.graph.node:
        written = Nodes(node, facts)
        known = node.op_type in SEQUENCES or all(name in facts.shapes for name in node.input if name)
        rule = rules.get(full_name(node)) if known else None
        made += written.made if rule and rule(written) else [node]
    refill(model.graph.node, made)


def _sign(nodes: Nodes) -> bool:
    """The sign of an unsigned integer is 0 or 1."""
    from onnx import TensorProto

    kind = nodes.facts.types[nodes.operand(0)]
    return kind in UNSIGNED and nodes.done(nodes.cast(nodes.cast(nodes.operand(0), TensorProto.BOOL), kind))


def _eye_like(nodes: Nodes) -> bool:
    """The device compares the places, so that no constant has the size of the matrix."""
    kind = nodes.given.get("dtype", 0) or nodes.facts.types[nodes.operand(0)]
    rows, columns = (np.arange(size) for size in nodes.facts.shapes[nodes.operand(0)])
    places = nodes.constant(rows[:, None] + nodes.given.get("k", 0))
    return nodes.done(nodes.cast(nodes.op("Equal", places, nodes.constant(columns[None])), kind))


def _shrink(nodes: Nodes) -> bool:
    """Numbers between -lambd and lambd become zero, and others come nearer to zero by the bias. Integers are computed
    in float32, as in ONNX Runtime. torch-mlir takes floats only."""
    from onnx import TensorProto

    x, kind = nodes.operand(0), nodes.facts.types[nodes.operand(0)]
    if kind in FLOATS:
        return False
    given = {"bias": nodes.given.get("bias", 0.0), "lambd": nodes.given.get("lambd", 0.5)}
    return nodes.done(nodes.cast(nodes.op("Shrink", nodes.cast(x, TensorProto.FLOAT), **given), kind))


def _abs(nodes: Nodes) -> bool:
    """StableHLO has no absolute value of unsigned integers, which have no sign."""
    return nodes.facts.types[nodes.operand(0)] in UNSIGNED and nodes.done(nodes.operand(0))


def _lp_normalization(nodes: Nodes) -> bool:
    """A vector divided by its norm; zeros stay zeros."""
    x, axis = nodes.operand(0), nodes.constant([nodes.given.get("axis", -1)])
    size = nodes.op("Abs", x) if nodes.given.get("p", 2) == 1 else nodes.op("Mul", x, x)
    total = nodes.op("ReduceSum", size, axis)
    norm = total if nodes.given.get("p", 2) == 1 else nodes.op("Sqrt", total)
    zero = nodes.op("Equal", norm, nodes.constant(0, like=x))
    return nodes.done(nodes.op("Div", x, nodes.op("Where", zero, nodes.constant(1, like=x), norm)))


def _cumulative_product(nodes: Nodes) -> bool:
    """In each round, every element is multiplied by the element some places before it: 1 place, then 2, 4 and so on."""
    x, axis = nodes.operand(0), nodes.value(1)
    if axis is None:
        return False
    shape, dim = nodes.facts.shapes[x], int(axis.reshape(()))
    length, reverse = shape[dim], bool(nodes.given.get("reverse", 0))
    product = x
    for step in [1] * bool(nodes.given.get("exclusive", 0)):
        product = _shifted(nodes, product, shape, dim, step, reverse)
    step = 1
    while step < length:
        product = nodes.op("Mul", product, _shifted(nodes, product, shape, dim, step, reverse))
        step *= 2
    return nodes.done(product)


def _cumulative_sum(nodes: Nodes) -> bool:
    """If the element of a place itself does not count, sums are moved by one place. torch-mlir subtracts the element
    instead, which gives NaN for an infinite one."""
    x, axis, reverse = nodes.operand(0), nodes.value(1), nodes.given.get("reverse", 0)
    if axis is None:
        return False
    shape, dim = nodes.facts.shapes[x], int(axis.reshape(()))
    if 0 in shape:
        return nodes.done(x)
    if not nodes.given.get("exclusive", 0):
        return False
    sums = nodes.op("CumSum", x, nodes.operand(1), reverse=reverse)
    return nodes.done(_shifted(nodes, sums, shape, dim, 1, bool(reverse), 0))


def _shifted(nodes: Nodes, x: str, shape: list[int], dim: int, step: int, reverse: bool, fill: int = 1) -> str:
    """The elements `step` places before each place, or after it if `reverse` is true. Missing elements are `fill`."""
    length = shape[dim]
    step = min(step, length)
    missing = nodes.constant(
        np.full([step if i == dim % len(shape) else n for i, n in enumerate(shape)], fill), nodes.operand(0)
    )
    first, last = (step, length) if reverse else (0, length - step)
    kept = nodes.op("Slice", x, *(nodes.constant([number]) for number in (first, last, dim)))
    return nodes.op("Concat", *((kept, missing) if reverse else (missing, kept)), axis=dim)


def _local_response(nodes: Nodes) -> bool:
    """A window of an even number of channels has one more channel behind its middle. torch-mlir has one more before it,
    so it gets the channels in the opposite order."""
    x = nodes.operand(0)
    if nodes.given["size"] % 2:
        return False
    turned = nodes.constant(np.arange(nodes.facts.shapes[x][1])[::-1].copy())
    result = nodes.op("LRN", nodes.op("Gather", x, turned, axis=1), **nodes.given)
    return nodes.done(nodes.op("Gather", result, turned, axis=1))


def _softplus(nodes: Nodes) -> bool:
    """Computes the op for a constant. torch-mlir crashes for it, and ONNX's evaluator gives infinity for large ones."""
    x = nodes.value(0)
    return x is not None and nodes.done(nodes.constant(np.logaddexp(0, x.astype(np.float64)), like=nodes.operand(0)))


def _softsign(nodes: Nodes) -> bool:
    x = nodes.operand(0)
    return nodes.done(nodes.op("Div", x, nodes.op("Add", nodes.op("Abs", x), nodes.constant(1, like=x))))


def _product(nodes: Nodes, x: str, axis: int, matrix: np.ndarray, rank: int, like: str) -> str:
    """The product with a matrix along a dimension."""
    weight = nodes.constant(matrix, like=like)
    if axis == rank - 1:
        return nodes.op("MatMul", x, weight)
    order = [i for i in range(rank) if i != axis] + [axis]
    product = nodes.op("MatMul", nodes.op("Transpose", x, perm=order), weight)
    return nodes.op("Transpose", product, perm=[order.index(i) for i in range(rank)])


def _dft(nodes: Nodes) -> bool:
    x, length = nodes.operand(0), nodes.value(1)
    shape = nodes.facts.shapes[x]
    axis_operand = nodes.value(2)
    default = nodes.given.get("axis", 1) if nodes.facts.opset < AXIS_IS_OPERAND else -2
    if (nodes.operand(1) and length is None) or (nodes.operand(2) and axis_operand is None):
        return False
    axis = (int(axis_operand.reshape(())) if axis_operand is not None else default) % len(shape)
    inverse, onesided = bool(nodes.given.get("inverse", 0)), bool(nodes.given.get("onesided", 0))
    usual = 2 * (shape[axis] - 1) if inverse and onesided else shape[axis]
    count = int(length.reshape(())) if length is not None else usual
    matrix = _dft_matrix(shape[axis], count, inverse, onesided)
    results = _transformed(nodes, x, shape, axis, matrix)[: 1 if inverse and onesided else 2]
    return nodes.done(nodes.op("Concat", *results, axis=len(shape) - 1))


def _stft(nodes: Nodes) -> bool:
    """The transforms of pieces of a signal, which begin at the multiples of a step."""
    signal, step, window, length = nodes.operand(0), nodes.value(1), nodes.operand(2), nodes.value(3)
    shape = nodes.facts.shapes[signal]
    if step is None or (length is None and (nodes.operand(3) or not window)) or len(shape) != SIGNAL_DIMENSIONS:
        return False
    size = nodes.facts.shapes[window][0] if length is None else int(length.reshape(()))
    begins = np.arange(0, shape[1] - size + 1, int(step.reshape(())))
    if not len(begins):
        return False
    pieces = nodes.op("Gather", signal, nodes.constant(begins[:, None] + np.arange(size)), axis=1)
    if window:
        pieces = nodes.op("Mul", pieces, nodes.op("Reshape", window, nodes.constant([size, 1])))
    matrix = _dft_matrix(size, size, inverse=False, onesided=bool(nodes.given.get("onesided", 1)))
    results = _transformed(nodes, pieces, [shape[0], len(begins), size, shape[2]], 2, matrix)
    return nodes.done(nodes.op("Concat", *results, axis=3))


def _transformed(nodes: Nodes, x: str, shape: Sequence[int], axis: int, matrix: np.ndarray) -> list[str]:
    """The real and the imaginary part of products with a matrix, along one dimension. The last dimension of x has the
    parts of its numbers, and that of a result has one element."""
    parts = [nodes.op("Gather", x, nodes.constant(i), axis=len(shape) - 1) for i in range(shape[-1])]
    rank = len(shape) - 1

    def times(part: str, values: np.ndarray) -> str:
        return _product(nodes, part, axis, values, rank, nodes.operand(0))

    real, imaginary = times(parts[0], matrix.real), times(parts[0], matrix.imag)
    if len(parts) == 2:
        real = nodes.op("Sub", real, times(parts[1], matrix.imag))
        imaginary = nodes.op("Add", imaginary, times(parts[1], matrix.real))
    last = nodes.constant([rank])
    return [nodes.op("Unsqueeze", one, last) for one in (real, imaginary)]


def _dft_matrix(length: int, count: int, inverse: bool, onesided: bool) -> np.ndarray:
    """The factors of `length` elements in the transform of `count` elements. Missing elements count as zeros.

    A one-sided result has only the frequencies that are not negative. If the input is one-sided, the missing ones are
    the conjugates of the given ones.
    """
    results = count // 2 + 1 if onesided and not inverse else count
    places, frequencies = np.arange(length)[:, None], np.arange(results)
    matrix = np.exp((2j if inverse else -2j) * np.pi * (places * frequencies % count) / count)
    if inverse:
        matrix /= count
    if inverse and onesided:
        matrix = matrix * np.where((places == 0) | (2 * places == count), 1, 2)
        return np.where(places <= count // 2, matrix, 0)
    return np.where(places < count, matrix, 0)


def _expand(nodes: Nodes) -> bool:
    """A list of sizes that has fewer than the operand is for its last dimensions."""
    shape, sizes = nodes.facts.shapes[nodes.operand(0)], nodes.value(1)
    if sizes is None or len(sizes) >= len(shape):
        return False
    whole = np.broadcast_shapes(tuple(shape), tuple(map(int, sizes)))
    return nodes.done(nodes.op("Expand", nodes.operand(0), nodes.constant(np.array(whole, np.int64))))


def _old_prelu(nodes: Nodes) -> bool:
    """Before opset 7, a vector of slopes was along dimension 1, and not along the last one."""
    x, slope = nodes.operand(0), nodes.operand(1)
    rank, slopes = len(nodes.facts.shapes[x]), nodes.facts.shapes[slope]
    if nodes.facts.opset >= SLOPES_ARE_BROADCAST or len(slopes) != 1 or rank <= 2:
        return False
    shape = nodes.constant([slopes[0], *[1] * (rank - 2)])
    nodes.op("PRelu", x, nodes.op("Reshape", slope, shape), result=nodes.result)
    return True


def _depth_to_space(nodes: Nodes) -> bool:
    """The places in a block are the first part of a channel's number, or its last part in the mode CRD."""
    x, size = nodes.operand(0), nodes.given["blocksize"]
    batch, channels, height, width = nodes.facts.shapes[x]
    last = nodes.given.get("mode", b"DCR") == b"CRD"
    parts = [channels // size**2, size, size] if last else [size, size, channels // size**2]
    apart = nodes.op("Reshape", x, nodes.constant([batch, *parts, height, width]))
    moved = nodes.op("Transpose", apart, perm=[0, 1, 4, 2, 5, 3] if last else [0, 3, 4, 1, 5, 2])
    shape = [batch, channels // size**2, height * size, width * size]
    return nodes.done(nodes.op("Reshape", moved, nodes.constant(shape)))


def _old_hardmax(nodes: Nodes) -> bool:
    """Before opset 13, the largest element was that of all dimensions from `axis` on."""
    x, shape = nodes.operand(0), nodes.facts.shapes[nodes.operand(0)]
    if nodes.facts.opset >= AXIS_IS_ONE:
        return False
    rows = nodes.op("Flatten", x, axis=nodes.given.get("axis", 1))
    nodes.op("Reshape", nodes.op("Hardmax", rows, axis=1), nodes.constant(shape), result=nodes.result)
    return True


def _gemm(nodes: Nodes) -> bool:
    """torch-mlir forgets the factor of a product to which nothing is added."""
    factor = nodes.given.get("alpha", 1.0)
    if nodes.operand(2) or factor == 1:
        return False
    x, kept = nodes.operand(0), {name: nodes.given.get(name, 0) for name in ("transA", "transB")}
    if nodes.facts.types[x] not in FLOATS:
        raise refused(nodes.node, f"expected a factor of 1 for integers, got {factor:g}")
    return nodes.done(nodes.op("Mul", nodes.op("Gemm", *nodes.node.input[:2], **kept), nodes.constant(factor, like=x)))


def _hardmax(nodes: Nodes) -> bool:
    """1 at the first of the largest elements along a dimension, 0 elsewhere."""
    x, axis = nodes.operand(0), nodes.given.get("axis", -1)
    first = nodes.op("ArgMax", x, axis=axis, keepdims=1)
    shape = nodes.facts.shapes[x]
    here = nodes.op("Equal", first, nodes.constant(_places(shape[axis], axis % len(shape), len(shape))))
    return nodes.done(nodes.cast(here, nodes.facts.types[x]))


def _one_hot(nodes: Nodes) -> bool:
    """The second value stands at the index, and the first value elsewhere. A negative index counts from the end."""
    from onnx import TensorProto

    depth, (x, _, values) = nodes.value(1), nodes.node.input
    if depth is None:
        return False
    count, rank = int(depth.reshape(())), len(nodes.facts.shapes[x]) + 1
    axis = nodes.given.get("axis", -1) % rank
    index = nodes.op("Unsqueeze", nodes.cast(x, TensorProto.INT64), nodes.constant([axis]))
    from_end = nodes.op("Add", index, nodes.constant(count))
    index = nodes.op("Where", nodes.op("Less", index, nodes.constant(0)), from_end, index)
    here = nodes.op("Equal", index, nodes.constant(_places(count, axis, rank)))
    off, on = (nodes.op("Gather", values, nodes.constant(number), axis=0) for number in (0, 1))
    return nodes.done(nodes.op("Where", here, on, off))


def _places(count: int, axis: int, rank: int) -> np.ndarray:
    """The numbers of the places along a dimension."""
    return np.arange(count).reshape([count if i == axis else 1 for i in range(rank)])


def _cast_like(nodes: Nodes) -> bool:
    return nodes.done(nodes.cast(nodes.operand(0), nodes.facts.types[nodes.operand(1)]))


def _clip(nodes: Nodes) -> bool:
    """Without bounds, the result is the operand."""
    return not nodes.operand(1) and not nodes.operand(2) and nodes.done(nodes.operand(0))


def _dropout(nodes: Nodes) -> bool:
    """Outside of training, the result is the operand."""
    training = nodes.value(2)
    if nodes.operand(2) and (training is None or bool(training.reshape(()))):
        return False
    nodes.named(1, nodes.constant(np.ones(nodes.facts.shapes[nodes.operand(0)], bool)))
    return nodes.done(nodes.operand(0))


Rules: TypeAlias = dict[str, Callable[[Nodes], bool]]
# Applied before the conversion to a newer opset, which leaves these nodes as they are.
OLD_RULES: Rules = {"Hardmax": _old_hardmax, "PRelu": _old_prelu, "Scan": old_scan}
RULES: Rules = {
    **CONTRACTIONS,
    **FEATURES,
    **OPTIMIZERS,
    **PARTS,
    **PLACES,
    **POOLS,
    **QUANTIZED,
    **REDUCTIONS,
    **SAMPLING,
    **SCATTERING,
    **SEQUENCES,
    **dict.fromkeys(("GRU", "LSTM", "RNN"), recurrent),
    "Abs": _abs,
    "CastLike": _cast_like,
    "Clip": _clip,
    "CumProd": _cumulative_product,
    "CumSum": _cumulative_sum,
    "DFT": _dft,
    "DepthToSpace": _depth_to_space,
    "Det": determinant,
    "Dropout": _dropout,
    "Expand": _expand,
    "EyeLike": _eye_like,
    "Gemm": _gemm,
    "Hardmax": _hardmax,
    "LRN": _local_response,
    "LpNormalization": _lp_normalization,
    "OneHot": _one_hot,
    "Pow": power,
    "STFT": _stft,
    "Shrink": _shrink,
    "Sign": _sign,
    "Softplus": _softplus,
    "Softsign": _softsign,
}
