"""Nodes of ONNX models that contract or normalize: Einsum, ConvTranspose and GroupNormalization, in the forms that
torch-mlir refuses."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from functools import reduce
from math import prod

import numpy as np

from tt_torch.mlir.onnx_nodes import Nodes

FIRST = 2  # the first dimension that windows have
SCALES_PER_CHANNEL = 21  # the first opset in which GroupNormalization has a scale for each channel


def _group_normalization(nodes: Nodes) -> bool:
    """Each group of channels gets the mean 0 and the variance 1, in the type that `stash_type` names."""
    from onnx import TensorProto

    x, scale, bias = nodes.node.input
    shape, kind = nodes.facts.shapes[x], nodes.facts.types[x]
    if nodes.facts.opset < SCALES_PER_CHANNEL:
        return False
    inner = nodes.given.get("stash_type", TensorProto.FLOAT)
    sizes = nodes.constant([shape[0], nodes.given["num_groups"], prod(shape[1:]) // nodes.given["num_groups"]])
    rows = nodes.op("Reshape", nodes.cast(x, inner), sizes)
    axis = nodes.constant([2])
    centered = nodes.op("Sub", rows, nodes.op("ReduceMean", rows, axis))
    variance = nodes.op("ReduceMean", nodes.op("Mul", centered, centered), axis)
    small = nodes.cast(nodes.constant(np.float32(nodes.given.get("epsilon", 1e-5))), inner)
    normal = nodes.op("Div", centered, nodes.op("Sqrt", nodes.op("Add", variance, small)))
    whole = nodes.cast(nodes.op("Reshape", normal, nodes.constant(shape)), kind)
    channels = nodes.constant([shape[1], *[1] * (len(shape) - FIRST)])
    scaled = nodes.op("Mul", whole, nodes.op("Reshape", scale, channels))
    return nodes.done(nodes.op("Add", scaled, nodes.op("Reshape", bias, channels)))


def _transposed_convolution(nodes: Nodes) -> bool:
    """The convolution without padding, from whose ends elements are taken away, or to whose ends zeros are added. Then
    the bias is added."""
    x, weight = nodes.node.input[:2]
    size, kernel = nodes.facts.shapes[x][FIRST:], nodes.facts.shapes[weight][FIRST:]
    ones, none, given = [1] * len(size), [0] * len(size), nodes.given
    strides, dilations = given.get("strides", ones), given.get("dilations", ones)
    more, automatic = given.get("output_padding", none), given.get("auto_pad", b"NOTSET")
    begins, ends = given.get("pads", 2 * none)[: len(size)], given.get("pads", 2 * none)[len(size) :]
    if begins == ends and not any(more) and not automatic.startswith(b"SAME") and "output_shape" not in given:
        return False
    lengths = [s * (n - 1) + d * (k - 1) + 1 for n, k, s, d in zip(size, kernel, strides, dilations, strict=True)]
    if automatic.startswith(b"SAME") or "output_shape" in given:
        wanted = given.get("output_shape", [n * s for n, s in zip(size, strides, strict=True)])[-len(size) :]
        away = [n + m - w for n, m, w in zip(lengths, more, wanted, strict=True)]
        begins, ends = _split(away, at_end=automatic == b"SAME_UPPER")
    kept = {name: given[name] for name in ("dilations", "group", "kernel_shape", "strides") if name in given}
    y = nodes.op("ConvTranspose", x, weight, **kept)
    y = _cut(nodes, y, begins, [e - m for e, m in zip(ends, more, strict=True)], lengths)
    if not nodes.operand(2):
        return nodes.done(y)
    bias = nodes.op("Reshape", nodes.operand(2), nodes.constant([*nodes.facts.shapes[nodes.operand(2)], *ones]))
    return nodes.done(nodes.op("Add", y, bias))


def _split(away: Sequence[int], at_end: bool) -> tuple[list[int], list[int]]:
    """The elements that are taken away at the beginning and at the end. An odd one is at the end if `at_end`."""
    halves = [(n // 2, n - n // 2) if at_end else (n - n // 2, n // 2) for n in away]
    return [begin for begin, _ in halves], [end for _, end in halves]


def _cut(nodes: Nodes, y: str, begins: Sequence[int], ends: Sequence[int], lengths: Sequence[int]) -> str:
    """The value without elements at both ends of its last dimensions. Negative numbers add zeros."""
    dims = list(range(FIRST, FIRST + len(lengths)))
    first = [max(0, begin) for begin in begins]
    last = [length - max(0, end) for length, end in zip(lengths, ends, strict=True)]
    y = nodes.op("Slice", y, nodes.constant(first), nodes.constant(last), nodes.constant(dims))
    added = [0, 0, *(max(0, -n) for n in begins), 0, 0, *(max(0, -n) for n in ends)]
    return nodes.op("Pad", y, nodes.constant(added)) if any(added) else y


def _einsum(nodes: Nodes) -> bool:
    """An Einsum in which no operand has a letter twice, and whose result is written."""
    equation = nodes.given["equation"].decode().replace(" ", "")
    operands, arrow, result = equation.partition("->")
    texts, shapes = operands.split(","), [nodes.facts.shapes[x] for x in nodes.node.input]
    repeats = any(len(set(text.replace("...", ""))) < len(text.replace("...", "")) for text in texts)
    if arrow and not repeats and "..." not in equation and all(texts):
        return False
    hidden = [len(shape) - len(text) + 3 for text, shape in zip(texts, shapes, strict=True) if "..." in text]
    spare = "".join(sorted(set(string.ascii_letters) - set(equation))[: max(hidden, default=0)])
    if not arrow:
        once = (letter for letter in set(operands) - set(",.") if operands.count(letter) == 1)
        result = ("..." if hidden else "") + "".join(sorted(once))
    spelled = [_spelled(text, spare, shape) for text, shape in zip(texts, shapes, strict=True)]
    sizes = {letter: 1 for text in spelled for letter in text}
    for text, shape in zip(spelled, shapes, strict=True):
        sizes |= {letter: size for letter, size in zip(text, shape, strict=True) if size != 1}
    terms = [
        _distinct(nodes, *_without_ones(nodes, x, text, shape, sizes))
        for x, text, shape in zip(nodes.node.input, spelled, shapes, strict=True)
    ]
    return nodes.done(_product(nodes, terms, result.replace("...", spare)))


def _spelled(text: str, spare: str, shape: Sequence[int]) -> str:
    """The letters of all dimensions of an operand. An ellipsis has the last of the spare letters."""
    count = len(shape) - len(text.replace("...", ""))
    return text.replace("...", spare[len(spare) - count :])


def _without_ones(
    nodes: Nodes, x: str, text: str, shape: Sequence[int], sizes: dict[str, int]
) -> tuple[str, str, list[int]]:
    """The operand without dimensions of size 1 that are larger in another operand, with its letters and sizes."""
    kept = [i for i, (letter, size) in enumerate(zip(text, shape, strict=True)) if size == sizes[letter]]
    if len(kept) == len(shape):
        return x, text, list(shape)
    left = [shape[i] for i in kept]
    return nodes.op("Reshape", x, nodes.constant(np.array(left, np.int64))), "".join(text[i] for i in kept), left


def _distinct(nodes: Nodes, x: str, text: str, shape: list[int]) -> tuple[str, str]:
    """The diagonals of an operand that has a letter twice, and its letters."""
    while repeated := next((letter for letter in text if text.count(letter) > 1), ""):
        a, b = (i for i, letter in enumerate(text) if letter == repeated and text[:i].count(repeated) < 2)
        rest = [i for i in range(len(text)) if i not in (a, b)]
        size, shape = shape[a], [shape[i] for i in rest]
        pairs = nodes.op("Reshape", nodes.op("Transpose", x, perm=[*rest, a, b]), nodes.constant([*shape, size * size]))
        x = nodes.op("Gather", pairs, nodes.constant(np.arange(size) * (size + 1)), axis=len(rest))
        text, shape = "".join(text[i] for i in rest) + repeated, [*shape, size]
    return x, text


def _product(nodes: Nodes, terms: Sequence[tuple[str, str]], result: str) -> str:
    """The contraction of the operands with letters, times the operands without dimensions."""
    factors = [x for x, text in terms if not text]
    if tensors := [(x, text) for x, text in terms if text]:
        equation = f"{','.join(text for _, text in tensors)}->{result}"
        factors.insert(0, nodes.op("Einsum", *(x for x, _ in tensors), equation=equation))
    return reduce(lambda total, x: nodes.op("Mul", total, x), factors)


CONTRACTIONS: dict[str, Callable[[Nodes], bool]] = {
    "ConvTranspose": _transposed_convolution,
    "Einsum": _einsum,
    "GroupNormalization": _group_normalization,
}
